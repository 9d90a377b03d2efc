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
			links, c := locktest.New(t, n, redlatch.Options{})
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
			links, c := locktest.New(t, n, redlatch.Options{NodeTimeout: time.Minute})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 2 * time.Second})
			for _, lk := range links[:n/2+1] {
				lk.Set(func(l *locktest.Link) { l.Deaf = true })
				lk.Freeze()
			}
			deadline := l.Deadline()
			<-l.Context().Done()
			locktest.WantTook(t, deadline, 0, 0)
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
		links, c := locktest.New(t, 5, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{NoKeepAlive: true})
		before := l.Deadline()
		time.Sleep(time.Second)
		links[:3].Cut()
		locktest.WantErr(t, l.Extend(t.Context()), redlatch.ErrNoQuorum)
		if !l.Deadline().Equal(before) {
			t.Errorf("two of five moved the deadline by %v", l.Deadline().Sub(before))
		}
		links[0].Mend()
		links.Set(func(l *locktest.Link) { l.Back = 100 * time.Millisecond })
		must(t, l.Extend(t.Context()))
		// Counted from the start of the round, not from its end.
		if moved := l.Deadline().Sub(before); moved != time.Second {
			t.Errorf("an extension 1 s later moved the deadline by %v", moved)
		}
	})
}

func TestKeepAliveTriesAgainUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 3 * time.Second})
		links.Cut()
		time.Sleep(2700 * time.Millisecond)
		must(t, l.Err())
		links.Mend()
		time.Sleep(time.Minute)
		must(t, l.Err())
	})
}

// TestExtendNeverCreatesALostLockNorTouchesAnothers has the nodes forget a lock, and
// another client acquire it.
func TestExtendNeverCreatesALostLockNorTouchesAnothers(t *testing.T) {
	for _, n := range []int{1, 3} {
		for _, other := range []string{"", "theirs"} {
			synctest.Test(t, func(t *testing.T) {
				links, c := locktest.New(t, n, redlatch.Options{})
				l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true})
				synctest.Wait()
				links.Drop("job")
				if other != "" {
					links.Take(t, "job", other, 5*time.Second)
				}
				locktest.WantErr(t, l.Extend(t.Context()), redlatch.ErrLost)
				locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
				synctest.Wait()
				for _, lk := range links {
					reply, err := lk.Node.Do(t.Context(), node.Request{Op: node.OpInspect, Name: "job"})
					if err != nil || reply.Value != other || reply.Left > 5*time.Second {
						t.Errorf("after our extension the lock is %+v, %v; want that of %q", reply, err, other)
					}
				}
			})
		}
	}
}

func TestLostLeaseIsFoundOutByTheKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		synctest.Wait()
		locktest.Release(t, links[0], "job")
		locktest.Release(t, links[1], "job")
		start := time.Now()
		<-l.Context().Done()
		locktest.WantTook(t, start, 0, 10*time.Second)
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

// TestSuspendedMachineHasLostItsLeaseOnWaking, unless it was suspended for less than
// the lease is valid: the extension that is overdue is sent then.
func TestSuspendedMachineHasLostItsLeaseOnWaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		clock := &suspendable{start: time.Now()}
		c := locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{}, clock))
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		clock.suspend(20 * time.Second)
		time.Sleep(time.Second)
		must(t, l.Err())
		if left := l.Remaining(); left < 25*time.Second {
			t.Errorf("%v are left after a suspension that an extension followed", left)
		}

		clock.suspend(time.Hour)
		if left := l.Remaining(); left > 0 {
			t.Errorf("an hour later %v are left of 30 s", left)
		}
		woke := time.Now()
		<-l.Context().Done()
		locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
		locktest.WantTook(t, woke, 0, 150*time.Millisecond)
		locktest.WantErr(t, l.Extend(t.Context()), redlatch.ErrLost)
	})
}

// TestHoldHasACeiling also has one that is shorter than the TTL, and a lease that is
// not kept alive.
func TestHoldHasACeiling(t *testing.T) {
	for _, c := range []struct {
		opts  redlatch.LockOptions
		held  time.Duration
		cause error
	}{
		{redlatch.LockOptions{MaxHold: time.Minute}, time.Minute, redlatch.ErrMaxHold},
		{redlatch.LockOptions{TTL: 10 * time.Second, MaxHold: 2 * time.Second}, 2 * time.Second, redlatch.ErrMaxHold},
		{redlatch.LockOptions{TTL: 10 * time.Second, NoKeepAlive: true}, 10*time.Second - 102*time.Millisecond, redlatch.ErrLost},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, client := locktest.New(t, 3, redlatch.Options{})
			l := locktest.MustLock(t, client, "job", c.opts)
			start := time.Now()
			<-l.Context().Done()
			locktest.WantTook(t, start, c.held, c.held)
			locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrLost, c.cause)
		})
	}
}

func TestReleaseTwiceIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
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

func TestCloseReleasesWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, c := locktest.New(t, 3, redlatch.Options{})
		var leases []*redlatch.Lease
		for i := range 100 {
			leases = append(leases, locktest.MustLock(t, c, fmt.Sprint("job ", i), redlatch.LockOptions{}))
		}
		synctest.Wait()
		links.Set(func(l *locktest.Link) { l.Out = 100 * time.Millisecond })
		start := time.Now()
		must(t, c.Close())
		locktest.WantTook(t, start, 0, 100*time.Millisecond) // all at once
		for i, l := range leases {
			locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrReleased)
			locktest.WantFree(t, links, fmt.Sprint("job ", i))
		}
		_, err := c.Lock(t.Context(), "job", nil)
		locktest.WantErr(t, err, redlatch.ErrClosed)
		must(t, leases[0].Release(t.Context()))
	})
}

func TestLeaseIsCarriedToAnotherClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		a := locktest.NewClient(t, nodes, redlatch.Options{Prefix: "p:"})
		b := locktest.NewClient(t, nodes, redlatch.Options{Prefix: "p:"})
		// A handle that rounded it would have extensions shorten the lease.
		const ttl = 5*time.Second + 999*time.Microsecond
		l := locktest.MustLock(t, a, "job", redlatch.LockOptions{TTL: ttl})
		handle, err := l.Detach()
		must(t, err)
		locktest.WantErr(t, context.Cause(l.Context()), redlatch.ErrDetached)
		time.Sleep(3 * time.Second)
		l2, err := b.Attach(t.Context(), handle)
		must(t, err)
		if l2.Token() != l.Token() || l2.Name() != "job" || l2.TTL() != ttl {
			t.Errorf("attached %s token %d ttl %v", l2.Name(), l2.Token(), l2.TTL())
		}
		time.Sleep(time.Minute)
		must(t, l2.Release(t.Context()))
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
			locktest.WantTook(t, start, 100*time.Millisecond, 100*time.Millisecond)
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
