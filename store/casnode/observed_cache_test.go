package casnode_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// counted is a store without a clock that counts its requests.
type counted struct {
	clockless.Timed
	reads, refused int
}

func (c *counted) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	c.reads++
	return c.Timed.Read(ctx, name)
}

func (c *counted) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (bool, casnode.Snapshot, error) {
	done, present, err := c.Timed.Swap(ctx, seen, w)
	if !done {
		c.refused++
	}
	return done, present, err
}

// do executes a request, which must have this outcome.
func do(t *testing.T, n *casnode.Node, want node.Status, op node.Op, name, value string) {
	t.Helper()
	time.Sleep(time.Millisecond)
	req := node.Request{Op: op, Name: name, Value: value, TTL: 30 * time.Second, Fencing: node.Fencing{Window: time.Hour, Retention: time.Hour}}
	if op != node.OpInspect {
		req.Token = node.Token(time.Now().UnixMicro())
	}
	if r, err := n.Do(t.Context(), req); err != nil || r.Status != want {
		t.Fatalf("%v of %s by %s: %v, %v; want %v", op, name, value, r.Status, err, want)
	}
}

// TestWrongMemoryForgetsNothingThatWasObserved: what a node remembers of a row may be
// older than what it has observed since.
func TestWrongMemoryForgetsNothingThatWasObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := clockless.New(nil)
		ours, theirs := &counted{Timed: clockless.Timed{Store: shelf.Open()}}, &counted{Timed: clockless.Timed{Store: shelf.Open()}}
		a, b := casnode.New(ours, &casnode.Options{Poll: true}), casnode.New(theirs, &casnode.Options{Poll: true})
		do(t, a, node.Granted, node.OpAcquire, "job", "ours")
		do(t, a, node.Granted, node.OpRelease, "job", "ours")
		do(t, b, node.Granted, node.OpAcquire, "job", "theirs")
		do(t, a, node.Held, node.OpInspect, "job", "")
		time.Sleep(31 * time.Second)
		do(t, a, node.Granted, node.OpAcquire, "job", "ours again")
		if ours.refused != 1 {
			t.Errorf("%d writes were refused, want the one from the cache", ours.refused)
		}
	})
}

// TestUncontendedRequestIsOneWriteWithoutAClock: the node remembers what it wrote, also
// of a store without a clock, but not a row with timers.
func TestUncontendedRequestIsOneWriteWithoutAClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := clockless.New(nil)
		open := func() (*counted, *casnode.Node) {
			s := &counted{Timed: clockless.Timed{Store: shelf.Open()}}
			return s, casnode.New(s, &casnode.Options{Poll: true})
		}
		ours, n := open()
		do := func(n *casnode.Node, want node.Status, op node.Op, name, value string) {
			t.Helper()
			do(t, n, want, op, name, value)
		}
		for i := range 10 {
			for _, name := range []string{"job", fmt.Sprint("new ", i)} {
				do(n, node.Granted, node.OpAcquire, name, "ours")
				do(n, node.Granted, node.OpExtend, name, "ours")
				do(n, node.Granted, node.OpRelease, name, "ours")
			}
		}
		if ours.reads != 1 || ours.refused > 0 {
			t.Errorf("60 requests that nobody contended for: %d reads, want 1; %d writes were refused", ours.reads, ours.refused)
		}
		// Another process is refused, again and again, and leaves one timer.
		do(n, node.Granted, node.OpAcquire, "job", "ours")
		theirs, other := open()
		for range 3 {
			do(other, node.Held, node.OpAcquire, "job", "theirs")
		}
		if theirs.reads < 3 || shelf.Running() != 1 {
			t.Errorf("3 tries for a lock that is held: %d reads, want 3; %d timers run", theirs.reads, shelf.Running())
		}
		// The holder finds out, and reads until it is alone again.
		for range 5 {
			do(n, node.Granted, node.OpExtend, "job", "ours")
		}
		if ours.reads < 3 || ours.refused != 1 {
			t.Errorf("extensions of a row that another has written: %d reads, %d writes were refused", ours.reads, ours.refused)
		}
		time.Sleep(11 * time.Second)
		do(n, node.Granted, node.OpExtend, "job", "ours")
		before := ours.reads
		for range 5 {
			do(n, node.Granted, node.OpExtend, "job", "ours")
		}
		if ours.reads != before || ours.refused != 1 {
			t.Errorf("alone again: %d reads, want none; %d writes were refused", ours.reads-before, ours.refused-1)
		}
	})
}

// TestMemoryJudgesTokensByTheClockOfTheRequest has a process whose own wall clock is
// three hours behind that of the other nodes.
func TestMemoryJudgesTokensByTheClockOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counted{Timed: clockless.Timed{Store: clockless.New(nil).Open()}}
		n := casnode.New(s, &casnode.Options{Poll: true})
		for i := range 5 { // new names, which have no fence
			clock := time.Now().Add(3 * time.Hour)
			req := node.Request{Name: fmt.Sprint("job ", i), Value: "ours", TTL: time.Minute, Fencing: node.Fencing{Clock: clock, Token: node.Token(clock.UnixMicro()), Window: time.Hour, Retention: 4 * time.Hour}}
			for _, req.Op = range []node.Op{node.OpAcquire, node.OpRelease} {
				if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Granted {
					t.Fatalf("%v: %v, %v", req.Op, r.Status, err)
				}
			}
			time.Sleep(time.Millisecond)
		}
		if s.reads != 1 {
			t.Errorf("%d reads, want 1", s.reads)
		}
	})
}
