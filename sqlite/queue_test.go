package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
)

// TestPlaceBehindTheFirstOutlastsABusyMachine has three in line. The second is
// not heard of for longer than WaiterLease, as happens on a busy machine, and
// keeps its place; when it is the first and the name is free, it has WaiterLease
// to come for it, and no more.
func TestPlaceBehindTheFirstOutlastsABusyMachine(t *testing.T) {
	now := time.Now()
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), timekeeper{wall: func() time.Time { return now }})
	ask := func(op redlatch.Op, who string, ticket int64) redlatch.Status {
		t.Helper()
		req := request(op, "job", who)
		req.TTL, req.Wait, req.Ticket = time.Minute, true, ticket
		req.Token = redlatch.Token(now.UnixMicro())
		r, err := n.Do(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Millisecond)
		return r.Status
	}
	want := func(status redlatch.Status, op redlatch.Op, who string, ticket int64) {
		t.Helper()
		if got := ask(op, who, ticket); got != status {
			t.Fatalf("%v by %s: %v, want %v", op, who, got, status)
		}
	}
	want(redlatch.Granted, redlatch.OpAcquire, "holder", 0)
	for ticket, who := range []string{"first", "second", "third"} {
		want(redlatch.Held, redlatch.OpAcquire, who, int64(ticket+1))
	}
	now = now.Add(3 * redlatch.WaiterLease)
	want(redlatch.Held, redlatch.OpAcquire, "first", 1) // the others are not heard of
	want(redlatch.Granted, redlatch.OpRelease, "holder", 0)
	want(redlatch.Granted, redlatch.OpAcquire, "first", 1)
	want(redlatch.Granted, redlatch.OpRelease, "first", 0)
	want(redlatch.Reserved, redlatch.OpAcquire, "third", 3)
	now = now.Add(redlatch.WaiterLease / 2)
	want(redlatch.Reserved, redlatch.OpAcquire, "third", 3)
	now = now.Add(redlatch.WaiterLease / 2)
	want(redlatch.Granted, redlatch.OpAcquire, "third", 3)
}

// TestWaiterThatAsksAgainNeedsNotWaitForWriters has another process in the middle
// of writing. Whoever stands in line already is answered all the same.
func TestWaiterThatAsksAgainNeedsNotWaitForWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	n, other := mustOpen(t, path, systemTime()), mustOpen(t, path, systemTime())
	holder := request(redlatch.OpAcquire, "job", "holder")
	holder.Token = redlatch.Token(time.Now().UnixMicro())
	do(t, n, holder)
	req := request(redlatch.OpAcquire, "job", "waiter")
	req.Wait, req.Ticket, req.Token = true, 1, holder.Token+1
	first := do(t, n, req)
	if err := other.begin(context.Background(), beginWrite); err != nil {
		t.Fatal(err)
	}
	defer other.rollback()
	ctx, cancel := context.WithTimeout(context.Background(), redlatch.WaiterLease/4)
	defer cancel()
	again, err := n.Do(ctx, req)
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
	// A place that is about to lapse must be written anew.
	<-time.After(redlatch.WaiterLease * 6 / 10)
	if _, err := n.Do(ctx, req); err == nil {
		t.Error("the place was not renewed")
	}
}
