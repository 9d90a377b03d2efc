package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

func TestLockIsGrantedToOneAtATime(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes := memory.Nodes(n)
				var mu sync.Mutex
				inside, most, served := 0, 0, 0
				var last redlatch.Token
				var all sync.WaitGroup
				for range 5 {
					c := locktest.NewClient(t, nodes, redlatch.Options{})
					all.Go(func() {
						l, err := c.Lock(t.Context(), "job", nil)
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						inside++
						most = max(most, inside)
						served++
						if l.Token() <= last {
							exclusion.Never(t, "token %d came after %d", l.Token(), last)
						}
						last = l.Token()
						mu.Unlock()
						time.Sleep(12 * time.Second) // more than the time to live
						mu.Lock()
						inside--
						mu.Unlock()
						if err := l.Release(t.Context()); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if most != 1 || served != 5 {
					exclusion.Never(t, "%d were inside at once, %d of 5 were served", most, served)
				}
			})
		})
	}
}

func TestRoundIsSettledAsSoonAsAQuorumHasGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 5)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		links[1].Freeze()
		links[3].Freeze()
		start := time.Now()
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		must(t, l.Extend(t.Context()))
		must(t, l.Release(t.Context()))
		if took := time.Since(start); took != 0 {
			t.Errorf("two frozen nodes of five cost %v", took)
		}
	})
}

func TestRoundIsSettledAsSoonAsNoQuorumIsPossible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 5)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		for _, l := range links[:3] {
			l.Take(t, "job", "another", time.Minute)
		}
		for _, l := range links[3:] {
			l.Freeze()
		}
		start := time.Now()
		_, err := c.TryLock(t.Context(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrHeld)
		if took := time.Since(start); took != 0 {
			t.Errorf("three refusals of five took %v", took)
		}
	})
}

func TestSilentMinorityIsNotWaitedForTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 5)
		c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: 100 * time.Millisecond})
		// Two nodes refuse and one grants: only the two silent ones could
		// decide it.
		links[0].Take(t, "job", "another", time.Hour)
		links[1].Take(t, "job", "another", time.Hour)
		for _, l := range links[3:] {
			l.Freeze()
		}
		for i := range 100 {
			start, want := time.Now(), time.Duration(0)
			if i == 0 {
				want = 100 * time.Millisecond
			}
			_, err := c.TryLock(t.Context(), "job", nil)
			locktest.WantErr(t, err, redlatch.ErrHeld)
			if took := time.Since(start); took != want {
				t.Errorf("round %d took %v, want %v", i+1, took, want)
			}
			synctest.Wait()
		}
		if asked := links[4].Count(node.OpAcquire); asked > 1+16 {
			t.Errorf("a silent node was asked %d times at once", asked)
		}
	})
}

func TestNoQuorumIsToldWithinTheNodeTimeLimitWithEachNodesCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 5)
		c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: 100 * time.Millisecond})
		refused := errors.New("connection refused")
		links[0].SetDown(refused)
		links[2].Freeze()
		links[4].Freeze()
		start := time.Now()
		_, err := c.TryLock(t.Context(), "job", nil)
		if took := time.Since(start); took != 100*time.Millisecond {
			t.Errorf("it took %v, want the node time limit", took)
		}
		locktest.WantErr(t, err, redlatch.ErrNoQuorum, refused, redlatch.ErrNodeTimeout)
		var q *redlatch.QuorumError
		if !errors.As(err, &q) || len(q.Nodes) != 5 || q.Need != 3 {
			t.Fatalf("got %#v, want a QuorumError with an entry for each of five nodes", err)
		}
		for i, want := range []string{"connection refused", "granted", "time limit", "granted", "time limit"} {
			if got := q.Nodes[i].String(); !strings.Contains(got, want) {
				t.Errorf("node %d: %q, want %q in it", i, got, want)
			}
		}
		time.Sleep(time.Second)
		locktest.WantFree(t, []*locktest.Link{links[1], links[3]}, "job")
	})
}

func TestLockWithoutValidityLeftIsNotReturned(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			for _, l := range links {
				l.Set(func(l *locktest.Link) { l.Back = 18 * time.Millisecond })
			}
			// 20 ms minus 18 ms minus 2.2 ms of drift: no validity is left.
			_, err := c.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: 20 * time.Millisecond})
			locktest.WantErr(t, err, redlatch.ErrNoQuorum)
			var q *redlatch.QuorumError
			if !errors.As(err, &q) || !q.Late {
				t.Errorf("got %v, want a QuorumError that says it came too late", err)
			}
			// With a little more TTL some is left.
			l, err := c.TryLock(t.Context(), "other", &redlatch.LockOptions{TTL: 30 * time.Millisecond, NoKeepAlive: true})
			must(t, err)
			if left, want := l.Remaining(), 30*time.Millisecond-18*time.Millisecond-2300*time.Microsecond; left != want {
				t.Errorf("%v are left, want %v", left, want)
			}
		})
	}
}

func TestTieEndsAndLeavesNoMinorityKeys(t *testing.T) {
	for _, n := range []int{2, 4} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			for _, l := range links[:n/2] {
				l.Take(t, "job", "another", time.Hour)
			}
			_, err := c.TryLock(t.Context(), "job", nil)
			locktest.WantErr(t, err, redlatch.ErrHeld)
			synctest.Wait()
			locktest.WantFree(t, links[n/2:], "job")
			// A waiter waits while the tie lasts, and its error says why.
			_, err = c.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: 3 * time.Second})
			locktest.WantErr(t, err, redlatch.ErrHeld)
			time.Sleep(time.Second)
			locktest.WantFree(t, links[n/2:], "job")
		})
	}
}

func TestContendersOnAnEvenNumberOfNodesAreAllServed(t *testing.T) {
	for _, n := range []int{2, 4} {
		synctest.Test(t, func(t *testing.T) {
			_, nodes := locktest.NewLinks(t, n)
			var all sync.WaitGroup
			for range 4 {
				c := locktest.NewClient(t, nodes, redlatch.Options{})
				all.Go(func() {
					l, err := c.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: time.Minute})
					if err != nil {
						t.Error(err)
						return
					}
					l.Release(t.Context())
				})
			}
			all.Wait()
		})
	}
}

func TestCancelledCallerLeavesNothingBehind(t *testing.T) {
	for name, slow := range map[string]func(*locktest.Link){
		"slow on the way":            func(l *locktest.Link) { l.Out = time.Second },
		"slow on the way back":       func(l *locktest.Link) { l.Back = time.Second },
		"with a driver that is deaf": func(l *locktest.Link) { l.Out = time.Second; l.Deaf = true },
	} {
		for _, n := range []int{1, 3, 5} {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					links, nodes := locktest.NewLinks(t, n)
					c := locktest.NewClient(t, nodes, redlatch.Options{})
					for _, l := range links[:n/2+1] {
						l.Set(slow)
					}
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(50*time.Millisecond, cancel)
					_, err := c.Lock(ctx, "job", nil)
					locktest.WantErr(t, err, context.Canceled)
					time.Sleep(5 * time.Second)
					locktest.WantFree(t, links, "job")
				})
			})
		}
	}
}

func TestContextThatHasEndedSendsNothing(t *testing.T) {
	links, nodes := locktest.NewLinks(t, 3)
	c := locktest.NewClient(t, nodes, redlatch.Options{})
	gone := errors.New("the user went away")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(gone)
	_, err := c.Lock(ctx, "job", nil)
	locktest.WantErr(t, err, context.Canceled, gone)
	for _, l := range links {
		if l.Count(node.OpAcquire) != 0 {
			t.Errorf("node %v was asked", l)
		}
	}
}

func TestGrantThatComesAfterTheReleaseIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		links[2].Set(func(l *locktest.Link) { l.Out = 2 * time.Second; l.Deaf = true })
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		links[2].Set(func(l *locktest.Link) { l.Out = 0 })
		must(t, l.Release(t.Context()))
		time.Sleep(3 * time.Second)
		locktest.WantFree(t, links, "job")
	})
}

// TestGrantThatOvertakesItsUndoIsStale is about a request that nobody waits for
// any more, and that reaches the node after its release.
func TestGrantThatOvertakesItsUndoIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 1)
		c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: time.Second})
		links[0].Set(func(l *locktest.Link) { l.Out = 2 * time.Second })
		_, err := c.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: 30 * time.Second})
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		links[0].Set(func(l *locktest.Link) { l.Out = 0 })
		synctest.Wait()
		time.Sleep(3 * time.Second)
		locktest.WantFree(t, links, "job")
	})
}

func TestLostReplyDoesNotMakeOurOwnLockLookLikeAnothers(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			lose := func() {
				for _, l := range links {
					l.Set(func(l *locktest.Link) { l.LoseReplies = 1 })
				}
			}
			lose()
			for _, l := range links {
				l.Set(func(l *locktest.Link) { l.Lag = map[node.Op]time.Duration{node.OpRelease: 50 * time.Millisecond} })
			}
			_, err := c.TryLock(t.Context(), "job", nil)
			locktest.WantErr(t, err, redlatch.ErrNoQuorum)
			// At once, before the undo has reached the nodes:
			l, err := c.TryLock(t.Context(), "job", nil)
			if err != nil {
				t.Fatalf("after a lost reply the same client got: %v", err)
			}
			time.Sleep(time.Second) // until the lock is on all nodes
			lose()
			if err := l.Extend(t.Context()); !errors.Is(err, redlatch.ErrNoQuorum) {
				t.Fatalf("extension with all replies lost: %v", err)
			}
			synctest.Wait()
			must(t, l.Extend(t.Context()))
			lose()
			locktest.WantErr(t, l.Release(t.Context()), redlatch.ErrNoQuorum)
			time.Sleep(time.Second)
			locktest.WantFree(t, links, "job")
		})
	}
}

func TestUncontendedPairIsTwoRequestsToEachNode(t *testing.T) {
	for _, n := range []int{1, 5} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			for _, l := range links {
				l.Set(func(l *locktest.Link) { l.Out = time.Millisecond })
			}
			start := time.Now()
			for range 10 {
				l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
				synctest.Wait()
				must(t, l.Release(t.Context()))
				synctest.Wait()
			}
			if took := time.Since(start); took != 20*time.Millisecond {
				t.Errorf("N=%d: 10 pairs took %v, want 20 round trips of 1ms", n, took)
			}
			for _, l := range links {
				if a, r := l.Count(node.OpAcquire), l.Count(node.OpRelease); a != 10 || r != 10 {
					t.Errorf("N=%d: node %v got %d acquires and %d releases for 10 pairs", n, l, a, r)
				}
			}
		})
	}
}

func TestWaitIsBoundedByWaitAndContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		for _, l := range links {
			l.Take(t, "job", "another", time.Hour)
		}
		start := time.Now()
		_, err := c.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: 3 * time.Second})
		locktest.WantErr(t, err, redlatch.ErrHeld)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("Wait of 3s ended after %v", took)
		}

		synctest.Wait()
		before := links[0].Count(node.OpAcquire)
		_, err = c.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: redlatch.NoWait})
		locktest.WantErr(t, err, redlatch.ErrHeld)
		synctest.Wait()
		if tries := links[0].Count(node.OpAcquire) - before; tries != 1 {
			t.Errorf("with NoWait a node was asked %d times", tries)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		start = time.Now()
		_, err = c.Lock(ctx, "job", nil)
		locktest.WantErr(t, err, context.DeadlineExceeded)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("a context of 2s ended the wait after %v", took)
		}
	})
}

func TestWaitRidesOutAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		for _, l := range links {
			l.SetDown(errors.New("connection refused"))
		}
		_, err := c.Lock(t.Context(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		time.AfterFunc(time.Second, func() {
			for _, l := range links {
				l.SetDown(nil)
			}
		})
		if _, err := c.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: time.Minute}); err != nil {
			t.Error(err)
		}
	})
}

func TestWaiterGetsALockThatRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 5)
		c := locktest.NewClient(t, nodes, redlatch.Options{RetryDelay: time.Hour})
		for _, l := range links {
			l.Take(t, "job", "a crashed client", 7*time.Second)
		}
		start := time.Now()
		locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		if took := time.Since(start); took < 7*time.Second || took > 8*time.Second {
			// RetryDelay alone would have taken twelve minutes or more.
			t.Errorf("a lock that ran out after 7s was had after %v", took)
		}
	})
}

func TestHeldErrorSaysWhoAndForHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		a := locktest.NewClient(t, nodes, redlatch.Options{Label: "nightly"})
		b := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, a, "job", redlatch.LockOptions{TTL: 8 * time.Second})
		time.Sleep(time.Second)
		_, err := b.TryLock(t.Context(), "job", nil)
		var held *redlatch.HeldError
		if !errors.As(err, &held) || held.Name != "job" || len(held.Holders) != 1 {
			t.Fatalf("got %v, want a HeldError with one holder", err)
		}
		h := held.Holders[0]
		if h.Owner != l.Owner() || !strings.HasSuffix(h.Owner, "/nightly") || h.Kind != redlatch.KindLease ||
			h.Left != 7*time.Second || h.Token != l.Token() || h.Nodes < 2 {
			t.Errorf("got holder %+v, want %s for 7s with token %d", h, l.Owner(), l.Token())
		}
		for _, l := range links {
			l.Take(t, "plain", "not one of ours", time.Minute)
		}
		_, err = b.TryLock(t.Context(), "plain", nil)
		if !errors.As(err, &held) || held.Holders[0].Kind != redlatch.KindPlain {
			t.Errorf("got %v, want a plain holder", err)
		}
	})
}
