package casnode

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
)

// TestCrowdOfOneRowIsServedInTurn has 48 callers of 16 clients want one row of a
// store whose statements take 40 ms. Every write fails if another came between, and
// still each of them has its turn.
func TestCrowdOfOneRowIsServedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // requests that Close did not wait for end
		const clients, lasts = 16, time.Minute
		s := &distant{table: newTable(time.Now), delay: 40 * time.Millisecond}
		ctx, stop := context.WithTimeout(t.Context(), lasts)
		defer stop()
		var mu sync.Mutex // guards got
		var got [clients]int
		var crowd sync.WaitGroup
		for i := range clients {
			c, err := redlatch.New([]redlatch.Node{New(s, nil)}, &redlatch.Options{NodeTimeout: 1500 * time.Millisecond})
			must(t, err)
			defer c.Close()
			for _, opts := range []redlatch.LockOptions{{}, {Shared: true}, {Slots: 3}} {
				crowd.Go(func() {
					for ctx.Err() == nil {
						l, err := c.Lock(ctx, "job", &opts)
						if err != nil {
							continue
						}
						mu.Lock()
						got[i]++
						mu.Unlock()
						time.Sleep(50 * time.Millisecond)
						l.Release(context.Background())
					}
				})
			}
		}
		crowd.Wait()
		if least, most := slices.Min(got[:]), slices.Max(got[:]); least < 3 || most > 3*least {
			t.Errorf("the clients got %v locks in %v, want 3 or more each, and none three times as many as another", got, lasts)
		}
	})
}

// TestHolderIsBackBeforeACrowdOfWaiters has requests be refused again and again: a
// holder's come sooner, since all others wait for it.
func TestHolderIsBackBeforeACrowdOfWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tries = 100
		waits := func(req node.Request) time.Duration {
			begin := time.Now()
			for range tries {
				must(t, pause(t.Context(), req, tries))
			}
			return time.Since(begin) / tries
		}
		waiters := waits(node.Request{Op: node.OpAcquire, Wait: true})
		for _, op := range []node.Op{node.OpRelease, node.OpExtend, node.OpRepair} {
			if holder := waits(node.Request{Op: op}); holder > waiters/10 {
				t.Errorf("%v waits for %v, and waiters for %v", op, holder, waiters)
			}
		}
	})
}
