//go:build unix

package nodestate_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// TestModelIsMarkedAsARealServer sends sequences of marks of every kind to
// both, from clients of two memberships, and flushes and promotes both in
// between. Requests know of later markings now and then, and of membership
// changes. No quarantine ends in that time.
func TestModelIsMarkedAsARealServer(t *testing.T) {
	server := servertest.Redis(t, 1)[0]
	from, count := check.Seeds(t, 1, 20)
	seen := map[string]int{}
	for seed := from; seed < from+min(count, 200); seed++ {
		server.Do("FLUSHALL")
		open, _ := ofServer(server)
		n := listen(t, open(t), false) // it remembers the highest epoch
		known := uint64(0)
		s := rand.New(rand.NewPCG(seed, 0))
		var now time.Time
		model := nodestate.Server{ID: "model"}
		guards := []*node.Guard{
			{Membership: "0123456789abcdef", Nodes: "a b c", MaxTTL: 2 * time.Hour, Window: 2 * time.Second, Quarantine: 3 * time.Hour},
			{Membership: "fedcba9876543210", Nodes: "a b d", MaxTTL: 2 * time.Hour, Window: 2 * time.Second, Quarantine: 4 * time.Hour, Told: true},
			{Membership: "0123456789abcdef", Nodes: "a b c", MaxTTL: 4 * time.Hour, Window: 2 * time.Second, Quarantine: 5 * time.Hour},
			{Membership: "0123456789abcdef", Nodes: "a b c", MaxTTL: 2 * time.Hour, Window: 2 * time.Second, Quarantine: 3 * time.Hour, Off: true},
			{Membership: "0123456789abcdef", Nodes: "a b c", MaxTTL: 4 * time.Hour, Window: 2 * time.Second, Quarantine: 5 * time.Hour, Off: true},
			{Membership: "0123456789abcdef", Nodes: "a b c", Generation: 2, MaxTTL: 2 * time.Hour, Window: 2 * time.Second, Quarantine: 3 * time.Hour},
			{Membership: "0123456789abcdef", Nodes: "a b c", Generation: 3, MaxTTL: 4 * time.Hour, Window: 2 * time.Second, Quarantine: 5 * time.Hour},
		}
		var log []string
		for i := range 50 {
			switch {
			case one(s, 15):
				server.Do("FLUSHALL")
				model.Flush()
				log = append(log, "flush")
			case one(s, 8):
				// A promotion changes a master's replication id.
				server.Do("REPLICAOF", "127.0.0.1", "1")
				server.Do("REPLICAOF", "NO", "ONE")
				model.Restart(true, fmt.Sprint("model ", seed, " ", i))
				log = append(log, "promotion")
			}
			guard := guards[[]int{0, 0, 0, 0, 0, 1, 2, 2, 3, 4, 5, 5, 5, 6}[s.IntN(14)]]
			c := challenge{mark: &node.MarkRequest{Guard: guard, Mark: node.Mark(s.IntN(6)),
				Least: []time.Duration{0, 0, 6 * time.Hour}[s.IntN(3)],
				Until: []time.Time{{}, time.Now().Add(time.Hour), time.Now().Add(-time.Hour)}[s.IntN(8)/3]}}
			if one(s, 3) || guard.Off {
				name := fmt.Sprint("marked/", seed, "/", i-i%10)
				ops := []node.Op{node.OpAcquire, node.OpAcquire, node.OpExtend, node.OpRepair, node.OpBreak}
				c = challenge{Request: node.Request{Op: ops[s.IntN(len(ops))], Guard: guard, Name: name, Value: fmt.Sprintf("%032x:%s", s.IntN(2), name),
					TTL: min(guard.MaxTTL, []time.Duration{time.Hour, time.Hour, 3 * time.Hour}[s.IntN(3)]), Fencing: node.Fencing{Window: 2 * time.Second, Retention: time.Hour, Token: node.Token(time.Now().UnixMicro())}}}
			}
			if one(s, 12) {
				known++ // another node has noted a later marking
			}
			c.Epoch = known
			epochs := []node.Epochs{"", "", "0a0a0a0a:1", "0:3,0a0a0a0a:3,0b0b0b0b:1", "0:2,0b0b0b0b:2,0c0c0c0c:1", "0:4,0b0b0b0b:5", "00000000:2,0:2"}[s.IntN(7)]
			lineage := []string{"", "0a0a0a0a", "0b0b0b0b"}[s.IntN(3)]
			if c.mark != nil {
				c.mark.Epoch, c.mark.Epochs, c.mark.Lineage = known, epochs, lineage
			}
			real, err := c.ask(n.Node)
			check.Must(t, err)
			now, known = real.Now, max(known, real.Epoch)
			said, _, err := c.apply(&model, now)
			check.Must(t, err)
			log = append(log, fmt.Sprintf("%v %v: %v", c, *guard, real.Status))
			seen[fmt.Sprint(c, real.Status)]++
			a, b := c.essence(real), c.essence(said)
			if real.Epochs != "" || c.mark != nil { // a common grant leaves them out
				a += fmt.Sprintf(", lineage %s, epochs %q", real.Lineage, real.Epochs)
				b += fmt.Sprintf(", lineage %s, epochs %q", said.Lineage, said.Epochs)
			}
			if real.Guard != nil && said.Guard != nil && *real.Guard != *said.Guard {
				a, b = fmt.Sprintf("%+v", *real.Guard), fmt.Sprintf("%+v", *said.Guard)
			}
			if a != b || (real.Left-said.Left).Abs() > time.Second || real.TrustedFrom.Sub(said.TrustedFrom).Abs() > time.Second {
				t.Fatalf("seed %d: the server says %s, for another %v, trusted from %v, the model %s, %v, %v, to the last of:\n%s",
					seed, a, real.Left, real.TrustedFrom, b, said.Left, said.TrustedFrom, joined(log))
			}
		}
	}
	if len(seen) < 25 && count >= 20 {
		t.Errorf("only these answers were seen: %v", seen)
	}
	t.Log(seen)
}
