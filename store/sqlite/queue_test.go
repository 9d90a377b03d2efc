package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

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
	must(t, err)
	defer end()
	ask := func(limit time.Duration) (node.Reply, error) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		return n.Do(ctx, req)
	}
	now = now.Add(node.WaiterLease * 4 / 10)
	again, err := ask(time.Minute)
	must(t, err)
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
