//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestNobodyIsStarvedInTrouble has contenders hand a lock over while faults
// occur all the time.
func TestNobodyIsStarvedInTrouble(t *testing.T) {
	t.Parallel()
	const (
		contenders = 5
		turns      = 6
		ttl        = time.Second
		bound      = 3 * time.Minute // a second or two on a machine that is idle
	)
	each := func(pause time.Duration, args ...string) func(servers []*servertest.Server, i int) {
		return func(servers []*servertest.Server, i int) {
			servers[i%len(servers)].Do(args...)
			time.Sleep(pause) // between two faults, so that the server recovers
		}
	}
	for name, trouble := range map[string]func(servers []*servertest.Server, i int){
		"inboxes are cut":       each(5*time.Millisecond, "CLIENT", "KILL", "TYPE", "pubsub"),
		"connections are cut":   each(15*time.Millisecond, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"),
		"scripts are forgotten": each(time.Millisecond, "SCRIPT", "FLUSH"),
		"a server forgets its queue": func(servers []*servertest.Server, i int) {
			servers[0].Kill()
			servers[0].Restart()
			time.Sleep(100 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := servertest.Redis(t, 3)
			var had, cut [contenders]atomic.Int32
			var why [contenders]atomic.Value
			var inside atomic.Pointer[redlatch.Lease]
			var enough atomic.Bool
			var all sync.WaitGroup
			ctx, stop := context.WithTimeout(context.Background(), bound)
			defer stop()
			start := time.Now()
			for i := range contenders {
				nodes, err := drivers[[]string{"rueidis", "goredis"}[i%2]](servertest.Addresses(servers)...)
				must(t, err)
				c := newClient(t, nodes, quick)
				all.Go(func() {
					for !enough.Load() && ctx.Err() == nil {
						l, err := c.Lock(ctx, "job", &redlatch.LockOptions{TTL: ttl})
						if errors.Is(err, redlatch.ErrNoQuorum) {
							cut[i].Add(1)
							why[i].Store(err)
							continue // its connections to a quorum were cut at this moment
						}
						if err != nil && ctx.Err() == nil {
							t.Errorf("contender %d: %v", i, err)
						}
						if err != nil {
							return
						}
						if before := inside.Swap(l); before != nil && before.Remaining() > 0 {
							exclusion.Never(t, "two hold the lock at once: %v are left of the first lease", before.Remaining())
						}
						time.Sleep(time.Millisecond)
						had[i].Add(1)
						inside.CompareAndSwap(l, nil)
						// If it cannot be released now, it is released later or
						// expires.
						l.Release(ctx)
					}
				})
			}
			blows := 0
			least := func() (n int32) {
				n = had[0].Load()
				for i := range had {
					n = min(n, had[i].Load())
				}
				return n
			}
			for ; (least() < turns || blows < 3) && ctx.Err() == nil; blows++ {
				trouble(servers, blows)
			}
			if n := least(); n < turns {
				t.Errorf("one contender had %d turns of %d within %v", n, turns, bound)
				for i := range had {
					t.Logf("contender %d had %d turns, and no quorum %d times, at last: %v", i, had[i].Load(), cut[i].Load(), why[i].Load())
				}
			}
			enough.Store(true)
			all.Wait()
			t.Logf("%d turns each within %v and %d blows", least(), time.Since(start), blows)
		})
	}
}

// TestInboxCutInTheInstantOfAWakeIsMadeUpFor loses the notification together
// with the connection that it arrives on.
func TestInboxCutInTheInstantOfAWakeIsMadeUpFor(t *testing.T) {
	t.Parallel()
	eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
		server := servertest.Redis(t, 1)[0]
		proxy := servertest.NewProxy(t, server)
		holder := newClient(t, nodes(server.URL()), redlatch.Options{})
		waiter := newClient(t, nodes(proxy.URL()), redlatch.Options{})
		best, cuts, began := time.Hour, 0, time.Now()
		for try := 0; cuts < 3 && try < 10; try++ {
			lease := mustLock(t, holder, "job", redlatch.LockOptions{})
			waiting := goLock(waiter, "job", redlatch.LockOptions{})
			eventually(t, patience, inLine([]*servertest.Server{server}, "job", 1))
			proxy.CutAt("\r\nt0000") // a notification for the head, with a fence
			start := time.Now()
			mustRelease(t, lease)
			l := mustGet(t, waiting, patience)
			took := time.Since(start)
			if over(t, took, time.Second+slack, start) {
				t.Errorf("the lock was handed on within %v", took)
			}
			if proxy.HasCut() { // else it happened to ask at that moment
				best = min(best, took)
				cuts++
			}
			proxy.CutAt("")
			mustRelease(t, l)
		}
		if cuts < 3 {
			t.Errorf("only %d wakes came by the proxy", cuts)
		}
		t.Logf("the lock was handed on within %v at the best", best)
		// The inbox is open again after 10 ms, and the waiter asks then.
		// Otherwise it would ask only when it renews its place, every 400 ms.
		if over(t, best, 200*time.Millisecond, began) {
			t.Errorf("the lock was handed on within %v at the best", best)
		}
	})
}

// TestWaiterDoesNotKeepTheHolderFromBeingRepaired has one server forget a lock,
// and a waiter find it free there before the holder extends it. The waiter
// cannot use that grant, and must not keep it from the holder: with one server
// less the holder's lock does not survive the loss of another server.
func TestWaiterDoesNotKeepTheHolderFromBeingRepaired(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	holder := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
	waiter := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
	// A busy machine extends it in time, too: every three seconds or so.
	lease := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{TTL: 10 * time.Second})
	ours := servers[0].Do("GET", "job")
	servers[2].Do("DEL", "job")
	waiting := goLock(waiter, "job", redlatch.LockOptions{TTL: 10 * time.Second})
	eventually(t, patience, inLine(servers[:2], "job", 1))
	// With an extension it is repaired.
	eventually(t, patience, func() error {
		if value := servers[2].Do("GET", "job"); value != ours {
			return fmt.Errorf("the third server has %q, the holder is %q", value, ours)
		}
		return lease.Err()
	})
	mustRelease(t, lease)
	mustRelease(t, mustGet(t, waiting, patience))
}
