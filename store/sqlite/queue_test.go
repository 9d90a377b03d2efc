package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// queue is a file whose clock the test controls, and the waiters in it for one
// name.
type queue struct {
	t   *testing.T
	n   *Node
	now time.Time
}

func newQueue(t *testing.T) *queue {
	t.Helper()
	q := &queue{t: t, now: time.Now().Truncate(time.Microsecond)}
	q.n = mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), timekeeper{wall: func() time.Time { return q.now }})
	return q
}

// want sends a request, and checks the answer. A millisecond passes.
func (q *queue) want(status node.Status, op node.Op, who string, ticket int64) {
	q.t.Helper()
	req := request(op, "job", who)
	req.TTL, req.Wait, req.Ticket = time.Minute, true, ticket
	req.Token = node.Token(q.now.UnixMicro())
	if r := do(q.t, q.n, req); r.Status != status {
		q.t.Fatalf("%v by %s: %v, want %v", op, who, r.Status, status)
	}
	q.now = q.now.Add(time.Millisecond)
}

// TestPlacesOfFrozenWaitersLapseTogether freezes all waiters but the last. It
// gets the free lock after two times WaiterLease. A waiter that asks in between
// keeps its place.
func TestPlacesOfFrozenWaitersLapseTogether(t *testing.T) {
	const crowd = 20
	q := newQueue(t)
	q.want(node.Granted, node.OpAcquire, "holder", 0)
	for i := range int64(crowd) {
		q.want(node.Held, node.OpAcquire, fmt.Sprint(i), i)
	}
	q.want(node.Granted, node.OpRelease, "holder", 0)
	q.want(node.Reserved, node.OpAcquire, fmt.Sprint(crowd-1), crowd-1)
	q.now = q.now.Add(node.WaiterLease)
	q.want(node.Reserved, node.OpAcquire, fmt.Sprint(crowd-1), crowd-1)
	q.now = q.now.Add(node.WaiterLease / 2)
	q.want(node.Reserved, node.OpAcquire, "7", 7)
	q.now = q.now.Add(node.WaiterLease / 2)
	q.want(node.Reserved, node.OpAcquire, fmt.Sprint(crowd-1), crowd-1)
	q.want(node.Granted, node.OpAcquire, "7", 7)
	q.want(node.Granted, node.OpRelease, "7", 7)
	q.want(node.Granted, node.OpAcquire, fmt.Sprint(crowd-1), crowd-1)
}

// TestPlaceBehindTheFirstOutlastsABusyMachine has three waiters. The second
// does not ask for longer than WaiterLease, as happens on a busy machine, and
// keeps its place. When it is the head and the name is free, it has WaiterLease
// to take the name, and no more.
func TestPlaceBehindTheFirstOutlastsABusyMachine(t *testing.T) {
	q := newQueue(t)
	want := q.want
	want(node.Granted, node.OpAcquire, "holder", 0)
	for ticket, who := range []string{"first", "second", "third"} {
		want(node.Held, node.OpAcquire, who, int64(ticket+1))
	}
	q.now = q.now.Add(3 * node.WaiterLease)
	want(node.Held, node.OpAcquire, "first", 1) // the others do not ask
	want(node.Granted, node.OpRelease, "holder", 0)
	want(node.Granted, node.OpAcquire, "first", 1)
	want(node.Granted, node.OpRelease, "first", 0)
	want(node.Reserved, node.OpAcquire, "third", 3)
	q.now = q.now.Add(node.WaiterLease / 2)
	want(node.Reserved, node.OpAcquire, "third", 3)
	q.now = q.now.Add(node.WaiterLease / 2)
	want(node.Granted, node.OpAcquire, "third", 3)
}

// TestWaiterThatAsksAgainNeedsNotWaitForWriters has another process in the
// middle of writing. A waiter that is already queued is answered nevertheless.
func TestWaiterThatAsksAgainNeedsNotWaitForWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	now := time.Now().Truncate(time.Microsecond)
	k := timekeeper{wall: func() time.Time { return now }}
	n, other := mustOpen(t, path, k), mustOpen(t, path, k)
	holder := request(node.OpAcquire, "job", "holder")
	holder.Token = node.Token(now.UnixMicro())
	do(t, n, holder)
	req := request(node.OpAcquire, "job", "waiter")
	req.Wait, req.Ticket, req.Token = true, 1, holder.Token+1
	first := do(t, n, req)
	end, err := beginWrite(other)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	ask := func(limit time.Duration) (node.Reply, error) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		return n.Do(ctx, req)
	}
	now = now.Add(node.WaiterLease * 4 / 10)
	again, err := ask(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if again.Left > first.Left || again.Left <= 0 {
		t.Errorf("left %v, then %v", first.Left, again.Left)
	}
	again.Left, again.Now = first.Left, first.Now
	if again != first || again.Rank != 1 {
		t.Errorf("the answer was %+v at first, and then %+v", first, again)
	}
	// A place that is about to lapse must be renewed in the file.
	now = now.Add(node.WaiterLease * 2 / 10)
	if _, err := ask(node.WaiterLease / 4); err == nil {
		t.Error("the place was not renewed")
	}
}
