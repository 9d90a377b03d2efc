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
		locktest.Run(t, fmt.Sprint(n), func(t *testing.T) {
			nodes := memory.Nodes(n)
			var h locktest.History
			var all sync.WaitGroup
			for range 5 {
				c := locktest.NewClient(t, nodes, redlatch.Options{})
				all.Go(func() {
					h.Hold(t, c, "job", redlatch.LockOptions{}, 12*time.Second) // more than the time to live
				})
			}
			all.Wait()
			if served, most := h.Judge(t); most != 1 || served != 5 {
				exclusion.Never(t, "%d were inside at once, %d of 5 were served", most, served)
			}
		})
	}
}

// TestRoundIsSettledAsSoonAsAQuorumHasGranted, or refused.
func TestRoundIsSettledAsSoonAsAQuorumHasGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 5, redlatch.Options{})
		links[:3].Take(t, "another's", "another", time.Minute)
		links[3:].Freeze() // two nodes of five
		start := time.Now()
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		must(t, l.Extend(t.Context()))
		must(t, l.Release(t.Context()))
		_, err := c.TryLock(t.Context(), "another's", nil)
		locktest.WantErr(t, err, redlatch.ErrHeld)
		locktest.WantTook(t, start, 0, 0)
	})
}

func TestNoQuorumIsToldWithinTheNodeTimeLimitWithEachNodesCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 5, redlatch.Options{NodeTimeout: 100 * time.Millisecond})
		refused := errors.New("connection refused")
		links[0].SetDown(refused)
		links[2].Freeze()
		links[4].Freeze()
		start := time.Now()
		_, err := c.TryLock(t.Context(), "job", nil)
		locktest.WantTook(t, start, 100*time.Millisecond, 100*time.Millisecond)
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
			links, c := locktest.New(t, n, redlatch.Options{})
			links.Set(func(l *locktest.Link) { l.Back = 18 * time.Millisecond })
			// 20 ms minus 18 ms minus 2.2 ms of drift: no validity is left.
			_, err := c.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: 20 * time.Millisecond})
			locktest.WantErr(t, err, redlatch.ErrNoQuorum)
			if q, ok := errors.AsType[*redlatch.QuorumError](err); !ok || !q.Late {
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
			links, c := locktest.New(t, n, redlatch.Options{})
			links[:n/2].Take(t, "job", "another", time.Hour)
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

func TestCancelledCallerLeavesNothingBehind(t *testing.T) {
	for name, slow := range map[string]func(*locktest.Link){
		"slow on the way":            func(l *locktest.Link) { l.Out = time.Second },
		"slow on the way back":       func(l *locktest.Link) { l.Back = time.Second },
		"with a driver that is deaf": func(l *locktest.Link) { l.Out = time.Second; l.Deaf = true },
	} {
		for _, n := range []int{1, 3, 5} {
			locktest.Run(t, fmt.Sprint(name, " ", n), func(t *testing.T) {
				links, c := locktest.New(t, n, redlatch.Options{})
				links[:n/2+1].Set(slow)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(50*time.Millisecond, cancel)
				_, err := c.Lock(ctx, "job", nil)
				locktest.WantErr(t, err, context.Canceled)
				time.Sleep(5 * time.Second)
				locktest.WantFree(t, links, "job")
			})
		}
	}
}

func TestContextThatHasEndedSendsNothing(t *testing.T) {
	links, c := locktest.New(t, 3, redlatch.Options{})
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

// TestGrantThatOvertakesItsUndoIsStale is about a request that nobody waits for
// any more, and that reaches the node after its release.
func TestGrantThatOvertakesItsUndoIsStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 1, redlatch.Options{NodeTimeout: time.Second})
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
			links, c := locktest.New(t, n, redlatch.Options{})
			lose := func() {
				links.Set(func(l *locktest.Link) { l.LoseReplies = 1 })
			}
			lose()
			links.Set(func(l *locktest.Link) { l.Lag = map[node.Op]time.Duration{node.OpRelease: 50 * time.Millisecond} })
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
			links, c := locktest.New(t, n, redlatch.Options{})
			links.Set(func(l *locktest.Link) { l.Out = time.Millisecond })
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
		links, c := locktest.New(t, 3, redlatch.Options{})
		links.Take(t, "job", "another", time.Hour)
		start := time.Now()
		_, err := c.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: 3 * time.Second})
		locktest.WantErr(t, err, redlatch.ErrHeld)
		locktest.WantTook(t, start, 3*time.Second, 3*time.Second)

		synctest.Wait()
		before := links[0].Count(node.OpAcquire)
		_, err = c.Lock(t.Context(), "job", &redlatch.LockOptions{Wait: redlatch.NoWait})
		locktest.WantErr(t, err, redlatch.ErrHeld)
		synctest.Wait()
		if tries := links[0].Count(node.OpAcquire) - before; tries != 1 {
			t.Errorf("with NoWait a node was asked %d times", tries)
		}

		ctx := locktest.Within(t, 2*time.Second)
		start = time.Now()
		_, err = c.Lock(ctx, "job", nil)
		locktest.WantErr(t, err, context.DeadlineExceeded)
		locktest.WantTook(t, start, 2*time.Second, 2*time.Second)
	})
}

func TestWaiterGetsALockThatRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 5, redlatch.Options{RetryDelay: time.Hour})
		links.Take(t, "job", "a crashed client", 7*time.Second)
		start := time.Now()
		locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		if took := time.Since(start); took < 7*time.Second || took > 8*time.Second {
			// RetryDelay alone would have taken twelve minutes or more.
			t.Errorf("a lock that ran out after 7s was had after %v", took)
		}
	})
}
