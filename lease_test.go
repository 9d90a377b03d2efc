package redlatch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

var must = check.Must

func TestLeaseIsKeptForAsLongAsItIsHeld(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: time.Second})
			token := l.Token()
			for range 100 {
				time.Sleep(time.Second)
				must(t, l.Err())
				if left := l.Remaining(); left < 600*time.Millisecond {
					t.Fatalf("only %v were left of a second that is extended at a third", left)
				}
			}
			if l.Token() != token {
				t.Errorf("extension changed the token from %d to %d", token, l.Token())
			}
			// 100 s at three extensions a second, plus or minus the last few.
			if n := links[0].Count(node.OpExtend); n < 295 || n > 305 {
				t.Errorf("%d extensions in 100 s of a lease of 1 s", n)
			}
		})
	}
}

func TestLeaseContextEndsAtTheDeadlineThoughNoCallReturns(t *testing.T) {
	for _, n := range []int{1, 5} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: time.Minute})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 2 * time.Second})
			for _, lk := range links[:n/2+1] {
				lk.Set(func(l *locktest.Link) { l.Deaf = true })
				lk.Freeze()
			}
			deadline := l.Deadline()
			<-l.Context().Done()
			if late := time.Since(deadline); late > 0 {
				t.Errorf("the context ended %v after the deadline", late)
			}
			locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
			locktest.WantErr(t, l.Err(), redlatch.ErrLost)
			locktest.WantErr(t, l.Extend(t.Context()), redlatch.ErrLost)
			locktest.WantErr(t, l.Release(t.Context()), redlatch.ErrLost)
			if left := l.Remaining(); left > 0 {
				t.Errorf("%v are left of a lost lease", left)
			}
		})
	}
}

func TestDeadlineMovesOnlyWhenAQuorumHasConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 5)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
		before := l.Deadline()
		time.Sleep(time.Second)
		for _, lk := range links[:3] {
			lk.SetDown(errors.New("connection refused"))
		}
		locktest.WantErr(t, l.Extend(t.Context()), redlatch.ErrNoQuorum)
		if !l.Deadline().Equal(before) {
			t.Errorf("two of five moved the deadline by %v", l.Deadline().Sub(before))
		}
		links[0].SetDown(nil)
		for _, lk := range links {
			lk.Set(func(l *locktest.Link) { l.Back = 100 * time.Millisecond })
		}
		must(t, l.Extend(t.Context()))
		// Counted from the start of the round, not from its end.
		if moved := l.Deadline().Sub(before); moved != time.Second {
			t.Errorf("an extension 1 s later moved the deadline by %v", moved)
		}
	})
}

func TestKeepAliveTriesAgainUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 3 * time.Second})
		for _, lk := range links {
			lk.SetDown(errors.New("connection refused"))
		}
		time.Sleep(2700 * time.Millisecond)
		if err := l.Err(); err != nil {
			t.Fatalf("lost before the deadline: %v", err)
		}
		for _, lk := range links {
			lk.SetDown(nil)
		}
		time.Sleep(time.Minute)
		if err := l.Err(); err != nil {
			t.Errorf("servers that came back before the deadline did not save the lease: %v", err)
		}
	})
}

func TestExtendNeverCreatesALostLock(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true})
			synctest.Wait()
			for _, lk := range links {
				locktest.Release(t, lk, "job")
			}
			locktest.WantErr(t, l.Extend(t.Context()), redlatch.ErrLost)
			locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
			synctest.Wait()
			locktest.WantFree(t, links, "job")
		})
	}
}

func TestExtendNeverTouchesAnothersLock(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true})
			synctest.Wait()
			for _, lk := range links {
				locktest.Release(t, lk, "job")
				lk.Take(t, "job", "theirs", 5*time.Second)
			}
			locktest.WantErr(t, l.Extend(t.Context()), redlatch.ErrLost)
			synctest.Wait()
			for _, lk := range links {
				reply, err := lk.Node.Do(t.Context(), node.Request{Op: node.OpInspect, Name: "job"})
				if err != nil || reply.Value != "theirs" || reply.Left > 5*time.Second {
					t.Errorf("after our extension the other's lock is %+v, %v", reply, err)
				}
			}
		})
	}
}

func TestLostLeaseIsFoundOutByTheKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		synctest.Wait()
		locktest.Release(t, links[0], "job")
		locktest.Release(t, links[1], "job")
		start := time.Now()
		<-l.Context().Done()
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("a lock that a quorum has forgotten was noticed after %v, want a third of the TTL", took)
		}
		locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
		time.Sleep(time.Second)
		locktest.WantFree(t, links, "job") // the third node's key, which is no use to anyone, is deleted
	})
}

// suspendable is the clock of a machine that can be suspended: timers stop, and
// only Uptime continues.
type suspendable struct {
	start time.Time
	mu    sync.Mutex
	slept time.Duration
}

func (c *suspendable) Now() time.Time { return time.Now().Add(c.asleep()) }

func (c *suspendable) Uptime() time.Duration { return time.Since(c.start) + c.asleep() }

func (c *suspendable) asleep() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slept
}

func (c *suspendable) suspend(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept += d
}

func TestSuspendedMachineHasLostItsLeaseOnWaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		clock := &suspendable{start: time.Now()}
		c := locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{}, clock))
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		time.Sleep(time.Second)

		clock.suspend(time.Hour)
		if left := l.Remaining(); left > 0 {
			t.Errorf("an hour later %v are left of 30 s", left)
		}
		woke := time.Now()
		<-l.Context().Done()
		locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
		if took := time.Since(woke); took > 150*time.Millisecond {
			t.Errorf("it was told only %v after waking", took)
		}
		locktest.WantErr(t, l.Extend(t.Context()), redlatch.ErrLost)
	})
}

func TestSuspensionShorterThanTheDeadlineCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		clock := &suspendable{start: time.Now()}
		c := locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{}, clock))
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		clock.suspend(20 * time.Second)
		time.Sleep(time.Second) // the overdue extension is sent
		must(t, l.Err())
		if left := l.Remaining(); left < 25*time.Second {
			t.Errorf("%v are left after a suspension that an extension followed", left)
		}
	})
}

func TestHoldHasACeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{MaxHold: time.Minute})
		start := time.Now()
		<-l.Context().Done()
		if held := time.Since(start); held != time.Minute {
			t.Errorf("held for %v with a MaxHold of a minute", held)
		}
		locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrLost, redlatch.ErrMaxHold)
	})
}

func TestHoldShorterThanTheTTLIsHeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 10 * time.Second, MaxHold: 2 * time.Second})
		start := time.Now()
		<-l.Context().Done()
		if held := time.Since(start); held != 2*time.Second {
			t.Errorf("held for %v with a MaxHold of 2s", held)
		}
		locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrMaxHold)
	})
}

func TestLeaseThatIsNotKeptEndsAtItsFirstDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 10 * time.Second, NoKeepAlive: true})
		start := time.Now()
		<-l.Context().Done()
		if held, want := time.Since(start), 10*time.Second-102*time.Millisecond; held != want {
			t.Errorf("held for %v, want %v", held, want)
		}
	})
}

func TestReleaseTwiceIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		for range 2 {
			must(t, l.Release(t.Context()))
			locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrReleased)
			locktest.WantErr(t, l.Extend(t.Context()), redlatch.ErrReleased)
		}
		synctest.Wait()
		locktest.WantFree(t, links, "job")
	})
}

func TestReleaseReachesANodeThatWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		synctest.Wait()
		links[1].SetDown(errors.New("connection refused"))
		must(t, l.Release(t.Context()))
		time.Sleep(5 * time.Second)
		links[1].SetDown(nil)
		time.Sleep(2 * time.Second)
		locktest.WantFree(t, links, "job")
	})
}

func TestReleaseGoesOnWhenItsContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		for _, lk := range links {
			lk.Set(func(l *locktest.Link) { l.Out = 100 * time.Millisecond })
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		locktest.WantErr(t, l.Release(ctx), context.Canceled)
		time.Sleep(time.Second)
		locktest.WantFree(t, links, "job")
	})
}

func TestReleaseOfALostLockSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		synctest.Wait()
		locktest.Release(t, links[0], "job")
		locktest.Release(t, links[2], "job")
		locktest.WantErr(t, l.Release(t.Context()), redlatch.ErrLost)
	})
}

func TestCloseReleasesWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		var leases []*redlatch.Lease
		for i := range 100 {
			leases = append(leases, locktest.MustLock(t, c, fmt.Sprint("job ", i), redlatch.LockOptions{}))
		}
		must(t, c.Close())
		for i, l := range leases {
			locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrReleased)
			locktest.WantFree(t, links, fmt.Sprint("job ", i))
		}
		_, err := c.Lock(t.Context(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrClosed)
		if err := leases[0].Release(t.Context()); err != nil {
			t.Errorf("releasing what Close released: %v", err)
		}
	})
}

func TestLeaseIsCarriedToAnotherClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		a := locktest.NewClient(t, nodes, redlatch.Options{Prefix: "p:"})
		b := locktest.NewClient(t, nodes, redlatch.Options{Prefix: "p:"})
		l := locktest.MustLock(t, a, "job", redlatch.LockOptions{TTL: 5 * time.Second})
		handle, err := l.Detach()
		must(t, err)
		locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrDetached)
		time.Sleep(3 * time.Second)
		l2, err := b.Attach(t.Context(), handle)
		must(t, err)
		if l2.Token() != l.Token() || l2.Name() != "job" || l2.TTL() != 5*time.Second {
			t.Errorf("attached %s token %d ttl %v", l2.Name(), l2.Token(), l2.TTL())
		}
		time.Sleep(time.Minute)
		if err := l2.Release(t.Context()); err != nil {
			t.Errorf("after a minute in the other client: %v", err)
		}
		synctest.Wait()
		locktest.WantFree(t, links, "p:job")
		_, err = b.Attach(t.Context(), handle)
		locktest.WantErr(t, err, redlatch.ErrLost)
		locktest.WantFree(t, links, "p:job")
	})
}

func TestDetachedLockRunsOutIfNobodyTakesItUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 5 * time.Second})
		handle, err := l.Detach()
		must(t, err)
		c.Close()
		if links[0].Holder(t, "job") == "" {
			t.Error("Close released a lock that was handed on")
		}
		time.Sleep(6 * time.Second)
		locktest.WantFree(t, links, "job")
		d := locktest.NewClient(t, nodes, redlatch.Options{})
		_, err = d.Attach(t.Context(), handle)
		locktest.WantErr(t, err, redlatch.ErrLost)
	})
}

// failingNode is a node whose Close returns an error.
type failingNode struct {
	redlatch.Node
	err error
}

func (n failingNode) Close() error { return n.err }

func TestEveryCloseReturnsWhenTheClientIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 1)
		broken := errors.New("cannot be closed")
		nodes[0] = failingNode{links[0], broken}
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		links[0].Set(func(l *locktest.Link) { l.Out = 100 * time.Millisecond })
		start := time.Now()
		errs := make(chan error)
		for range 2 {
			go func() { errs <- c.Close() }()
		}
		for range 2 {
			locktest.WantErr(t, <-errs, broken)
			if took := time.Since(start); took != 100*time.Millisecond {
				t.Errorf("a Close returned after %v, the lock was released after 100ms", took)
			}
		}
		locktest.WantErr(t, c.Close(), broken)
		locktest.WantFree(t, links, "job")
	})
}

func TestDeadlineIsTheSameInstantUntilItMoves(t *testing.T) {
	// In real time: two readings of the clock are never the same.
	c := locktest.NewClient(t, memory.Nodes(3), locktest.Patient)
	l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true})
	first := l.Deadline()
	for range 1000 {
		if again := l.Deadline(); !again.Equal(first) {
			t.Fatalf("the deadline moved by %v, and nothing was extended", again.Sub(first))
		}
	}
	if left, until := l.Remaining(), time.Until(first); (left - until).Abs() > 5*time.Second {
		t.Errorf("%v are left, and %v until the deadline", left, until)
	}
	must(t, l.Extend(t.Context()))
	second := l.Deadline()
	if !second.After(first) || !l.Deadline().Equal(second) {
		t.Errorf("an extension moved the deadline by %v", second.Sub(first))
	}
	must(t, l.Release(t.Context()))
	ended := l.Deadline()
	if time.Until(ended) > 0 || !l.Deadline().Equal(ended) {
		t.Errorf("the deadline of a lease that was released is %v from now", time.Until(ended))
	}
}
