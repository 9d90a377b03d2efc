package redlatch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

func TestLockAllAsksInOneOrderAndLocksEachNameOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		// A node may be asked for one name when a quorum of the others has
		// granted the next. So the order is that of the first node to be asked.
		var mu sync.Mutex
		var asked []string
		times := map[string]int{}
		for _, l := range links {
			l.Set(func(l *locktest.Link) {
				l.Hook = func(req node.Request) {
					mu.Lock()
					defer mu.Unlock()
					if req.Op != node.OpAcquire {
						return
					}
					if times[req.Name]++; times[req.Name] == 1 {
						asked = append(asked, req.Name)
					}
				}
			})
		}
		all, err := c.LockAll(t.Context(), []string{"c", "a", "b", "a"}, nil)
		must(t, err)
		synctest.Wait()
		mu.Lock()
		got := slices.Clone(asked)
		mu.Unlock()
		if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
			t.Errorf("it asked for %q, want %q", got, want)
		}
		for name, n := range times {
			if n != len(links) {
				t.Errorf("nodes were asked for %q %d times, want once each", name, n)
			}
		}
		var names []string
		for _, l := range all.All {
			names = append(names, l.Name())
			if all.Lease(l.Name()) != l {
				t.Errorf("Lease(%q) is another lease", l.Name())
			}
		}
		if !slices.Equal(names, got) {
			t.Errorf("it has leases of %q, want %q", names, got)
		}
		if l := all.Lease("d"); l != nil {
			t.Errorf("Lease of a name that was not locked is %v, want nil", l)
		}
		if all.Err() != nil || all.Remaining() <= 0 {
			t.Errorf("held: %v, %v remaining", all.Err(), all.Remaining())
		}
		before := all.Remaining()
		time.Sleep(time.Second)
		if err := all.Extend(t.Context()); err != nil || all.Remaining() != before {
			t.Errorf("extended: %v, %v remaining, %v before", err, all.Remaining(), before)
		}
		must(t, all.Release(t.Context()))
		locktest.WantErr(t, context.Cause(all.Context()), redlatch.ErrReleased)
		locktest.WantErr(t, all.Err(), redlatch.ErrReleased)
		synctest.Wait()
		for _, name := range names {
			locktest.WantFree(t, links, name)
		}
	})
}

func TestLockAllThatFailsLeavesNothingLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		locktest.MustLock(t, c, "b", redlatch.LockOptions{})
		_, err := c.LockAll(t.Context(), []string{"a", "b", "c"}, &redlatch.LockOptions{Wait: redlatch.NoWait})
		locktest.WantErr(t, err, redlatch.ErrHeld)
		ctx := locktest.Within(t, time.Second)
		_, err = c.LockAll(ctx, []string{"a", "b", "c"}, nil)
		locktest.WantErr(t, err, context.DeadlineExceeded)
		synctest.Wait()
		locktest.WantFree(t, links, "a")
		locktest.WantFree(t, links, "c")
	})
}

func TestWaitOfLockAllIsForAllTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := locktest.New(t, 3, redlatch.Options{})
		first := locktest.MustLock(t, c, "a", redlatch.LockOptions{})
		locktest.MustLock(t, c, "b", redlatch.LockOptions{})
		go func() {
			time.Sleep(3 * time.Second)
			first.Release(context.Background())
		}()
		start := time.Now()
		_, err := c.LockAll(t.Context(), []string{"a", "b"}, &redlatch.LockOptions{Wait: 4 * time.Second})
		locktest.WantErr(t, err, redlatch.ErrHeld)
		locktest.WantTook(t, start, 4*time.Second, 4500*time.Millisecond)
	})
}

// TestCallersOfSomeOfTheSameNamesDoNotWaitInACircle has processes that list the
// same names in random order.
func TestCallersOfSomeOfTheSameNamesDoNotWaitInACircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 6, 3, redlatch.Options{})
		ctx := locktest.Within(t, 10*time.Minute)
		var mu sync.Mutex
		held := map[string]int{}
		var wg sync.WaitGroup
		for i, h := range hosts {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			wg.Go(func() {
				for range 20 {
					names := []string{"a", "b", "c", "d"}
					random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
					names = names[:2+random.IntN(3)]
					all, err := h.LockAll(ctx, names, nil)
					if err != nil {
						t.Errorf("host %d, %q: %v", i, names, err)
						return
					}
					count := func(by int) {
						mu.Lock()
						defer mu.Unlock()
						for _, l := range all.All {
							if held[l.Name()] += by; held[l.Name()] > 1 {
								exclusion.Never(t, "%q has %d holders", l.Name(), held[l.Name()])
							}
						}
					}
					count(1)
					time.Sleep(10 * time.Millisecond)
					count(-1)
					if err := all.Release(ctx); err != nil {
						t.Errorf("host %d, %q: %v", i, names, err)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestLossOfOneOfSeveralEndsTheContextOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		all, err := c.LockAll(t.Context(), []string{"a", "b"}, &redlatch.LockOptions{TTL: 3 * time.Second})
		must(t, err)
		synctest.Wait() // the locks are on all nodes
		links.Drop("b")
		links.Take(t, "b", "another", time.Minute)
		<-all.Context().Done()
		locktest.WantErr(t, context.Cause(all.Context()), redlatch.ErrLost)
		locktest.WantErr(t, all.Err(), redlatch.ErrLost)
		if lost, ok := errors.AsType[*redlatch.LostError](all.Err()); !ok || lost.Name != "b" {
			t.Errorf("lost is %v, want %q", all.Err(), "b")
		}
		must(t, all.Lease("a").Err())
		locktest.WantErr(t, all.Release(t.Context()), redlatch.ErrLost)
		synctest.Wait()
		locktest.WantFree(t, links, "a")
	})
}

func TestLossWhileWaitingForAnotherNameEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		locktest.MustLock(t, c, "c", redlatch.LockOptions{})
		result := make(chan error)
		go func() {
			ctx := locktest.Within(t, time.Minute)
			_, err := c.LockAll(ctx, []string{"a", "b", "c"}, &redlatch.LockOptions{TTL: 3 * time.Second})
			result <- err
		}()
		time.Sleep(100 * time.Millisecond)
		links.Drop("a")
		links.Take(t, "a", "another", time.Minute)
		start := time.Now()
		err := <-result
		locktest.WantErr(t, err, redlatch.ErrLost)
		locktest.WantTook(t, start, 0, 3*time.Second)
		synctest.Wait()
		locktest.WantFree(t, links, "b")
	})
}
