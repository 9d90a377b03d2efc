//go:build unix

package chaos

import (
	"encoding/base64"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestFaultsOfClustersDoWhatTheySay is about the faults of etcd and ZooKeeper, one after
// the other on one cluster.
func TestFaultsOfClustersDoWhatTheySay(t *testing.T) {
	for _, kind := range ensembles {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, Family{}, kind)
			e := b.n.current().(*ensemble)
			b.strikesEveryKindOfMember(e)
			b.deposes(e, e.freeze)
			b.deposes(e, e.kill)
			if kind == ZooKeeper {
				b.expires()
				return
			}
			b.fills(e)
			b.compacts(e)
		})
	}
}

// leader waits until one member leads.
func (b *bench) leader(members []*servertest.Database, leads func(*servertest.Database) bool) (leader *servertest.Database) {
	b.Helper()
	poll.Until(b, "one member leads", func() bool {
		all := slices.DeleteFunc(slices.Clone(members), func(m *servertest.Database) bool { return !leads(m) })
		if len(all) == 1 {
			leader = all[0]
		}
		return len(all) == 1
	})
	return leader
}

func (b *bench) strikesEveryKindOfMember(e *ensemble) {
	leader, seen := b.leader(e.members, e.leads), map[string]bool{}
	for seed := range uint64(60) {
		who, some := e.victims(rand.New(rand.NewPCG(seed, 1)))
		seen[who] = true
		want := map[string]int{"the leader": 1, "a member": 1, "all members but the leader": membersOfEach - 1, "all members": membersOfEach}[who]
		if len(some) != want || slices.Contains(some, leader) != (who == "the leader" || who == "all members") {
			b.Errorf("%s: %d members, the leader among them: %v", who, len(some), slices.Contains(some, leader))
		}
	}
	if len(seen) != 4 {
		b.Errorf("only %v are struck", seen)
	}
}

// deposes strikes the leader. Another one takes over, and it comes back.
func (b *bench) deposes(e *ensemble, plan func(*nemesis, *rand.Rand) strike) {
	b.Helper()
	leader := b.leader(e.members, e.leads)
	rng := func(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
	seed, who := uint64(0), ""
	for who != "the leader" {
		seed++
		r := rng(seed)
		plan(b.w, r)
		who, _ = e.victims(r)
	}
	s, f := plan(b.w, rng(seed)), &Fault{}
	check.Must(b, s.apply(f))
	if !strings.HasSuffix(f.Detail, ": the leader") {
		b.Errorf("it says that it %s", f.Detail)
	}
	others := slices.DeleteFunc(slices.Clone(e.members), func(m *servertest.Database) bool { return m == leader })
	b.leader(others, e.leads)
	b.does(s.heal)
	b.leader(e.members, e.leads)
}

// put writes to etcd.
func (b *bench) put(e *ensemble) error {
	return tell(e.members[1], "kv/put", map[string]string{"key": base64.StdEncoding.EncodeToString([]byte("k")), "value": "AA=="}, nil)
}

func (b *bench) fills(e *ensemble) {
	s := e.fill(rand.New(rand.NewPCG(1, 1)))
	b.does(s.apply)
	if err := b.put(e); err == nil || !strings.Contains(err.Error(), "space exceeded") {
		b.Errorf("it takes a write: %v", err)
	}
	b.does(s.heal)
	check.Must(b, b.put(e))
}

func (b *bench) compacts(e *ensemble) {
	before := func() error {
		return tell(e.members[1], "kv/range", map[string]string{"key": "AA==", "revision": "2"}, nil)
	}
	check.Must(b, b.put(e))
	check.Must(b, before())
	for range 2 { // there may be nothing new
		b.does(compact(b.w, b.n, rand.New(rand.NewPCG(1, 1))).apply)
	}
	if err := before(); err == nil || !strings.Contains(err.Error(), "compacted") {
		b.Errorf("it knows a former revision: %v", err)
	}
}

// expires asks ZooKeeper by all ways of the client.
func (b *bench) expires() {
	answers := func() (n int) {
		for _, link := range b.n.linksOf(0) {
			if text, _ := servertest.AskZooKeeper(link.Addr(), "srvr", 2*time.Second); strings.Contains(text, "Mode: ") {
				n++
			}
		}
		return n
	}
	s := expire(b.w, b.n, rand.New(rand.NewPCG(1, 1)))
	if s.lasts <= session {
		b.Errorf("it lasts for %v, and a session for %v", s.lasts, session)
	}
	b.does(s.apply)
	if n := answers(); n > 0 {
		b.Errorf("%d members answer", n)
	}
	b.does(s.heal)
	poll.Until(b, "all members answer", func() bool { return answers() == membersOfEach })
}
