package casnode_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// late is a store that is slow for an acquisition: it puts a place 10 ms later, though the
// caller has left, or has read for a second, as late{} in the context says.
type late struct{ clockless.Placed }

func (s late) Put(ctx context.Context, p casnode.Place, again bool) (seen casnode.Snapshot, err error) {
	if ctx.Value(late{}) != "put" {
		return s.Placed.Put(ctx, p, again)
	}
	time.AfterFunc(10*time.Millisecond, func() { _, _ = s.Placed.Put(context.Background(), p, again) })
	<-ctx.Done()
	return seen, ctx.Err()
}

func (s late) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	seen, err := s.Placed.Read(ctx, name)
	if ctx.Value(late{}) == "read" {
		time.Sleep(time.Second)
	}
	return seen, err
}

// TestReleaseThatComesWhileItsAcquisitionIsOnTheWay has it come while the acquisition puts
// a place, which is cancelled then, and between its read and its write. The place comes
// all the same, and is removed; the acquisition writes nothing.
func TestReleaseThatComesWhileItsAcquisitionIsOnTheWay(t *testing.T) {
	for _, slow := range []string{"put", "read"} {
		held := slow == "put"
		synctest.Test(t, func(t *testing.T) {
			shelf := clockless.New(nil)
			placed := func() clockless.Placed { return clockless.Placed{Timed: clockless.Timed{Store: shelf.Open()}} }
			n, other := casnode.New(late{placed()}, nil), casnode.New(placed(), nil)
			do := func(ctx context.Context, n *casnode.Node, op node.Op, value string, ticket int64) node.Status {
				r, err := n.Do(ctx, node.Request{Op: op, Name: "job", Value: value, TTL: time.Minute, Parting: node.Parting{NoRepair: 2 * window},
					Fencing: node.Fencing{Token: node.Token(time.Now().UnixMicro() + ticket), Window: window, Retention: time.Minute}, Waiting: node.Waiting{Ticket: ticket, Wait: value != "next"}})
				if ctx.Err() == nil {
					check.Must(t, err)
				}
				return r.Status
			}
			do(t.Context(), other, node.OpAcquire, "holder", 1)
			if !held {
				do(t.Context(), other, node.OpRelease, "holder", 1)
			}
			time.Sleep(20 * time.Second) // the row is not known any more
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), late{}, slow))
			go do(ctx, n, node.OpAcquire, "leaver", 2)
			time.Sleep(5 * time.Millisecond)
			go do(t.Context(), n, node.OpRelease, "leaver", 2) // as the runner: before the request is cancelled
			if held {
				cancel()
			}
			time.Sleep(5 * time.Second)
			cancel()
			if all, err := placed().Places(t.Context(), "job"); len(all) > 0 || err != nil {
				t.Errorf("%d places are left (%v)", len(all), err)
			}
			if next := do(t.Context(), other, node.OpAcquire, "next", 3); !held && next != node.Granted {
				t.Errorf("the next one: %v", next)
			}
		})
	}
}
