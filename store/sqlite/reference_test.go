package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// TestAnswersLikeTheReference sends random requests of all modes to a file and to
// the reference implementation. The answers must be the same. So little time
// passes that no place in a queue lapses, because places lapse in other ways
// here.
func TestAnswersLikeTheReference(t *testing.T) {
	files, steps := 8, 400
	for seed := range uint64(files) {
		compareWithReference(t, rand.New(rand.NewPCG(seed, 0)), steps)
		if t.Failed() {
			t.Fatalf("the seed is %d", seed)
		}
	}
}

func compareWithReference(t *testing.T, r *rand.Rand, steps int) {
	now := time.Now().Truncate(time.Microsecond)
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), timekeeper{wall: func() time.Time { return now }})
	defer n.Close()
	server := nodestate.Server{Silent: true}
	base, start := node.Token(now.UnixMicro()), now
	var log []string
	for range steps {
		req := randomRequest(r, base, node.Token(now.Sub(start).Microseconds()))
		want, _ := server.Apply(now, req)
		got := do(t, n, req)
		want.Wakes = false
		log = append(log, fmt.Sprintf("%v %v %s token %d ticket %d wait %v once %v ttl %v: %v",
			req.Op, req.Share, req.Value, int64(req.Token)-int64(base), req.Ticket, req.Wait, req.Once, req.TTL, got.Status))
		if got != want {
			for _, l := range log[max(0, len(log)-25):] {
				t.Log(l)
			}
			t.Errorf("the answer is\n%+v, want\n%+v", got, want)
			return
		}
		looked, err := n.Look(context.Background(), req.Name)
		if err != nil {
			t.Fatal(err)
		}
		listing := server.Look(now, req.Name)
		if !slices.EqualFunc(looked.Holders, listing.Holders, sameHolder) || !slices.Equal(looked.Waiters, listing.Waiters) ||
			looked.Waiting != listing.Waiting || looked.Reply != listing.Reply {
			for _, l := range log[max(0, len(log)-25):] {
				t.Log(l)
			}
			t.Errorf("the listing is\n%+v, want\n%+v", looked, listing)
			return
		}
		if r.IntN(8) == 0 {
			now = now.Add(time.Duration(r.IntN(2000)) * time.Microsecond)
		}
	}
}

func sameHolder(a, b node.Holder) bool {
	same := a.Until.Equal(b.Until)
	a.Until = b.Until
	return same && a == b
}

func randomRequest(r *rand.Rand, base, passed node.Token) node.Request {
	ops := []node.Op{
		node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpAcquire, node.OpExtend, node.OpRelease, node.OpRelease,
		node.OpRepair, node.OpInspect, node.OpBreak,
	}
	shares := []node.Share{
		{}, {Mode: node.Shared}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 3, Slot: uint8(r.IntN(3))},
		{Mode: node.Slotted, Slots: 3, Slot: uint8(r.IntN(3))}, {Mode: node.Slotted, Slots: 2, Slot: uint8(r.IntN(2))},
	}
	req := request(ops[r.IntN(len(ops))], "name", string(rune('a'+r.IntN(6))))
	if req.Op == node.OpBreak && r.IntN(3) > 0 {
		req.Op = node.OpAcquire
	}
	if req.Op != node.OpBreak && req.Op != node.OpInspect {
		req.Share = shares[r.IntN(len(shares))]
	}
	switch r.IntN(8) {
	case 0: // no token
	case 1:
		req.Token = base + 30_000_000 // ahead of the clock
	default:
		req.Token = base + passed + node.Token(r.IntN(60))
	}
	if req.Op == node.OpRelease && r.IntN(2) == 0 {
		req.NoRepair = time.Duration(1+r.IntN(3000)) * time.Microsecond
	}
	req.Wait, req.Ticket = r.IntN(2) == 0, int64(r.IntN(4))
	req.Once = r.IntN(4) == 0
	if r.IntN(3) == 0 {
		req.TTL = time.Duration(1+r.IntN(5000)) * time.Microsecond
	}
	return req
}
