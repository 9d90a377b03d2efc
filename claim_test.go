package redlatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/node"
)

// refusing is a node on which another holds every lock. Its first reply is lost.
type refusing struct {
	asked atomic.Int32
	seen  func()
}

func (n *refusing) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if n.asked.Add(1) == 1 {
		return node.Reply{}, errors.New("connection reset by peer")
	}
	if req.Op == node.OpAcquire {
		n.seen()
	}
	return node.Reply{Status: node.Held, Value: "another", Left: time.Minute, Now: time.Now()}, nil
}

func (n *refusing) ReturnsByDeadline() bool { return true }
func (n *refusing) String() string          { return "refusing" }
func (n *refusing) Close() error            { return nil }

// TestClaimDoesNotGrowWhileItsCallerWaits has a caller wait for an hour after one
// reply was lost.
func TestClaimDoesNotGrowWhileItsCallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &refusing{}
		c, err := New([]Node{n}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		a, err := c.newAttempt("job", LockOptions{Wait: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		n.seen = func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			fields := reflect.ValueOf(a.claim).Elem()
			for i := range fields.NumField() {
				if k := fields.Field(i).Kind(); k == reflect.Slice || k == reflect.Map {
					most = max(most, fields.Field(i).Len())
				}
			}
		}
		if _, err := newWaiter(t.Context(), a).lock(t.Context()); !errors.Is(err, ErrHeld) {
			t.Fatal(err)
		}
		if n.asked.Load() < 100 {
			t.Errorf("the node was asked %d times: nothing is shown", n.asked.Load())
		}
		if most > 8 {
			t.Errorf("after %d requests the claim keeps a list of %d", n.asked.Load(), most)
		}
	})
}

// TestReleaseIsAboveEveryProposalThatANodeWouldGrant compares what is kept of
// earlier proposals with the list of all of them, for a clock that is put right
// at some time.
func TestReleaseIsAboveEveryProposalThatANodeWouldGrant(t *testing.T) {
	for range 10_000 {
		const half = 5_000 // of the window
		var p proposals
		var all []Token
		now, wrong := Token(1_000_000), rand.N(Token(20_000))
		right := rand.N(21) // from this proposal on, the clock is right
		for i := range 20 {
			now += 1 + rand.N(Token(500))
			token, most := now+wrong, now+wrong+half
			if i >= right {
				token, most = now, now+half
			}
			want := Token(0)
			for _, t := range all {
				if t <= most {
					want = max(want, t)
				}
			}
			switch got := p.upTo(most); {
			case got < want || got > most:
				t.Fatalf("of %d, with %d the most that is granted, a release has %d, want at least %d", all, most, got, want)
			case (right == 0 || right == 20 || want == 0) && got != want:
				t.Fatalf("of %d, with %d the most that is granted, a release has %d, want no more than %d", all, most, got, want)
			}
			p.add(token)
			all = append(all, token)
		}
	}
}
