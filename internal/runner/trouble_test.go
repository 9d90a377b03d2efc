package runner_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

// TestMinorityBesideAHolderIsLeftToIt has a holder that lacks one node, which is slow
// to answer: it was down, or its clock is wrong. A waiter does not ask without end.
func TestMinorityBesideAHolderIsLeftToIt(t *testing.T) {
	for _, wrong := range []time.Duration{0, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, 3)
			third := locktest.NewLink(t, memory.New(&memory.Options{Name: "3", Clock: func() time.Time { return time.Now().Add(wrong) }}))
			links[2], nodes[2] = third, third
			h, w := locktest.NewClient(t, nodes, redlatch.Options{}), locktest.NewClient(t, nodes, redlatch.Options{})
			if wrong == 0 {
				third.SetDown(errors.New("down"))
			}
			l := locktest.MustLock(t, h, "job", redlatch.LockOptions{})
			synctest.Wait() // until the node that is down was asked
			third.SetDown(nil)
			time.Sleep(time.Millisecond) // so that the tokens differ
			third.Set(func(l *locktest.Link) { l.Back = time.Millisecond })
			ctx := locktest.Within(t, 10*time.Second)
			before := links[0].Count(node.OpAcquire)
			w.Lock(ctx, "job", nil)
			if n := links[0].Count(node.OpAcquire) - before; n > 100 {
				t.Errorf("clock off by %v: one waiter asked a node %d times in 10 s", wrong, n)
			}
			if n := third.Count(node.OpAcquire); wrong == 0 && n > 3 {
				t.Errorf("and the node that it was to leave alone %d times", n)
			}
			if at := third.Holder(t, "job"); wrong == 0 && (at == "" || at != links[0].Holder(t, "job")) {
				t.Errorf("the node that the holder lacked has %q, want it repaired", at)
			}
			l.Release(t.Context())
		})
	}
}

func TestCancelledCallerDoesNotWaitForWhatItGivesUp(t *testing.T) {
	for what, holders := range map[string][]string{
		"yielded to who is before it": {"x", "y"},
		"left to the holder":          {"x", "x"},
	} {
		locktest.Run(t, what, func(t *testing.T) {
			links, c := locktest.New(t, 3, redlatch.Options{NodeTimeout: 10 * time.Second})
			for i, holder := range holders {
				links[i+1].Take(t, "job", holder, time.Minute)
				links[i+1].Set(func(l *locktest.Link) { l.Back = time.Millisecond })
			}
			var slow atomic.Int32
			links[0].Set(func(l *locktest.Link) {
				l.Hook = func(req node.Request) {
					if req.Op == node.OpYield || req.Op == node.OpRelease {
						slow.Add(1)
						time.Sleep(5 * time.Second)
					}
				}
			})
			ctx := locktest.Within(t, 100*time.Millisecond)
			start := time.Now()
			_, err := c.Lock(ctx, "job", nil)
			if took := time.Since(start); took != 100*time.Millisecond || slow.Load() == 0 {
				t.Errorf("cancelled after 100ms, returned after %v, with %d slow requests: %v", took, slow.Load(), err)
			}
			time.Sleep(10 * time.Second)
		})
	}
}

func TestTicketsAreTakenByTheNodesClocks(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		locktest.Run(t, by.String(), func(t *testing.T) {
			_, nodes := locktest.NewLinks(t, 3)
			first := locktest.NewClient(t, nodes, redlatch.Options{})
			second := locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{}, offClock{time.Now(), by}))
			if by > 0 {
				first, second = second, first
			}
			l := locktest.MustLock(t, locktest.NewClient(t, nodes, redlatch.Options{}), "job", redlatch.LockOptions{})
			waiters := &line{t: t}
			waiters.join(first, "first", 0, redlatch.LockOptions{})
			time.Sleep(3 * time.Second)
			waiters.join(second, "second", 0, redlatch.LockOptions{})
			time.Sleep(3 * time.Second)
			l.Release(t.Context())
			waiters.all.Wait()
			if order := waiters.order(); order[0] != "first" {
				t.Errorf("clock off by %v: %v", by, order)
			}
		})
	}
}
