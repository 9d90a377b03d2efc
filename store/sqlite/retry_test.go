package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/node"
)

// TestHolderGoesBeforeACrowdOfWaiters has waiters that write with every request,
// as they do when one of them did not come. The holder's requests and theirs are
// timed side by side.
func TestHolderGoesBeforeACrowdOfWaiters(t *testing.T) {
	stall.Retry(t, holderGoesFirst)
}

func holderGoesFirst(t testing.TB) {
	const waiters, requests = 40, 100
	path := filepath.Join(t.TempDir(), "locks.db")
	open := func() *Node {
		n, err := Open(path, nil)
		must(t, err)
		t.Cleanup(func() { n.Close() })
		return n
	}
	request := func(op node.Op, value string) node.Request {
		return node.Request{Op: op, Name: "job", Value: value, TTL: time.Minute}
	}
	holder := open()
	if r, err := holder.Do(t.Context(), request(node.OpAcquire, "holder")); err != nil || r.Status != node.Granted {
		t.Fatal(r.Status, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var total, asked atomic.Int64
	var all sync.WaitGroup
	for i := range waiters {
		n := open()
		all.Go(func() {
			for j := 0; ctx.Err() == nil; j++ {
				// Another value each time: it has no place that could be left as it is.
				req := request(node.OpAcquire, fmt.Sprint("waiter ", i, " ", j))
				req.Wait, req.Ticket = true, int64(i)
				start := time.Now()
				if _, err := n.Do(ctx, req); err == nil {
					total.Add(int64(time.Since(start)))
					asked.Add(1)
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	for asked.Load() < 2*waiters {
		time.Sleep(time.Millisecond)
	}
	total.Store(0)
	asked.Store(0)
	began := time.Now()
	var took time.Duration
	for range requests {
		start := time.Now()
		if r, err := holder.Do(t.Context(), request(node.OpExtend, "holder")); err != nil || r.Status != node.Granted {
			t.Fatal(r.Status, err)
		}
		took += time.Since(start)
		time.Sleep(time.Millisecond)
	}
	for asked.Load() < 2*waiters {
		time.Sleep(time.Millisecond)
	}
	theirs := time.Duration(total.Load() / asked.Load())
	cancel()
	all.Wait()
	t.Logf("the holder waited %v on average, the waiters %v", took/requests, theirs)
	if took/requests > theirs*3/4 {
		stall.Busy(t, 20*time.Millisecond, began)
		t.Errorf("the holder waited %v on average, the waiters %v: want at most three quarters of that", took/requests, theirs)
	}
}
