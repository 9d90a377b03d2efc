package runner_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

var errRefused = errors.New("connection refused")

// TestGrantOfALowerProposalIsUndone has one node grant the first proposal of a
// token. The node is away when the attempt fails after the second proposal.
func TestGrantOfALowerProposalIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		// The fence of two nodes is ahead of the clock: the first proposal is
		// stale there.
		for _, l := range links[1:] {
			l.Take(t, "job", "before", time.Second)
			if _, err := l.Node.Do(t.Context(), node.Request{Op: node.OpRelease, Name: "job", Value: "before",
				Token: redlatch.Token(time.Now().Add(5 * time.Second).UnixMicro()), Window: 10 * time.Second, Retention: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
		for _, l := range links {
			asked := 0
			l.Set(func(l *locktest.Link) {
				l.Hook = func(req node.Request) {
					if req.Op == node.OpAcquire {
						if asked++; asked == 2 {
							l.Set(func(l *locktest.Link) { l.Refuse = errRefused })
						}
					}
				}
			})
		}
		links[1].Set(func(l *locktest.Link) { l.Out = time.Millisecond })
		links[2].Set(func(l *locktest.Link) { l.Out = time.Millisecond })
		_, err := c.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: 30 * time.Second})
		locktest.WantErr(t, err, redlatch.ErrNoQuorum)
		for _, l := range links {
			l.Set(func(l *locktest.Link) { l.Refuse, l.Hook = nil, nil })
		}
		time.Sleep(5 * time.Second)
		locktest.WantFree(t, links, "job")
	})
}

func TestCloseDuringAnAttemptLeavesNothingBehind(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			for _, l := range links {
				l.Set(func(l *locktest.Link) { l.Out = 50 * time.Millisecond })
			}
			done := make(chan error)
			go func() {
				_, err := c.TryLock(t.Context(), "job", &redlatch.LockOptions{TTL: 30 * time.Second})
				done <- err
			}()
			time.Sleep(10 * time.Millisecond)
			go c.Close()
			locktest.WantErr(t, <-done, redlatch.ErrClosed)
			time.Sleep(time.Second)
			locktest.WantFree(t, links, "job")
		})
	}
}

func TestCloseEndsTheWaitOfCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		for _, l := range links {
			l.Take(t, "job", "another", time.Hour)
		}
		done := make(chan error)
		go func() {
			_, err := c.Lock(t.Context(), "job", nil)
			done <- err
		}()
		time.Sleep(time.Second)
		start := time.Now()
		c.Close()
		locktest.WantErr(t, <-done, redlatch.ErrClosed)
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("closing took %v", took)
		}
	})
}

func TestCloseDoesNotWaitForNodesThatAreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		links[0].Set(func(l *locktest.Link) { l.Refuse = errRefused })
		start := time.Now()
		c.Close()
		if took := time.Since(start); took > 0 {
			t.Errorf("closing took %v with a node down that answers at once", took)
		}
		locktest.WantFree(t, links[1:], "job")
	})
}

// slowHandler is a slow logger.
type slowHandler struct{ slog.Handler }

func (slowHandler) Enabled(context.Context, slog.Level) bool { return true }
func (slowHandler) Handle(context.Context, slog.Record) error {
	time.Sleep(2 * time.Second)
	return nil
}

func TestSlowLoggerDoesNotHoldUpTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{Logger: slog.New(slowHandler{})})
		first := locktest.MustLock(t, c, "first", redlatch.LockOptions{TTL: time.Second, NoKeepAlive: true})
		second := locktest.MustLock(t, c, "second", redlatch.LockOptions{TTL: 1500 * time.Millisecond, NoKeepAlive: true})
		<-first.Context().Done()
		<-second.Context().Done()
		if late := -second.Remaining(); late > 100*time.Millisecond {
			t.Errorf("the second lease ended %v late, while the first was being logged", late)
		}
		time.Sleep(10 * time.Second) // until it has all been logged
	})
}

func TestRecoveredNodeIsWaitedForWhereItIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		links[0].Freeze()
		l := locktest.MustLock(t, c, "one", redlatch.LockOptions{})
		time.Sleep(time.Second) // node 1 is known to be silent
		l.Release(t.Context())
		links[0].Thaw()
		links[0].Set(func(l *locktest.Link) { l.Out = 20 * time.Millisecond })
		links[1].Set(func(l *locktest.Link) { l.Refuse = errRefused })
		if _, err := c.TryLock(t.Context(), "two", nil); err != nil {
			t.Errorf("nodes 1 and 3 are a quorum, and yet: %v", err)
		}
	})
}

func TestAttachedLeaseKeepsTheWholeTTL(t *testing.T) {
	_, nodes := locktest.NewLinks(t, 1)
	c := locktest.NewClient(t, nodes, redlatch.Options{})
	ttl := 50*time.Millisecond + 999*time.Microsecond
	l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: ttl, NoKeepAlive: true})
	again, err := c.Attach(context.Background(), l.Handle())
	must(t, err)
	if again.TTL() != ttl {
		t.Errorf("a TTL of %v came back as %v: its extensions would shorten the first lease", ttl, again.TTL())
	}
}

func TestLockThatDoReleasedEarlyCanBeHadAgain(t *testing.T) {
	c := locktest.NewClient(t, memory.Nodes(3), redlatch.Options{})
	err := c.Do(context.Background(), "job", nil, func(ctx context.Context, l *redlatch.Lease) error {
		l.Release(context.Background())
		again, err := c.Lock(context.WithoutCancel(ctx), "job", nil)
		if err == nil {
			err = again.Release(context.Background())
		}
		return err
	})
	must(t, err)
}

// TestGrantOfALowerProposalIsUndoneThoughTheLastNeverGotThere has the third
// node grant the first proposal late. The last proposal never reaches it.
func TestGrantOfALowerProposalIsUndoneThoughTheLastNeverGotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		for _, l := range links[:2] { // a fence ahead of the clock: the first proposal is stale
			if _, err := l.Node.Do(t.Context(), node.Request{Op: node.OpRelease, Name: "job", Value: "before",
				Token: redlatch.Token(time.Now().Add(2 * time.Second).UnixMicro()), Window: time.Minute, Retention: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
		asked := 0
		links[2].Set(func(l *locktest.Link) {
			l.Back = 100 * time.Millisecond
			l.Hook = func(req node.Request) {
				if req.Op != node.OpAcquire {
					return
				}
				if asked++; asked == 2 {
					time.Sleep(150 * time.Millisecond)
					l.Set(func(l *locktest.Link) { l.Refuse = errRefused })
				}
			}
		})
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{})
		must(t, l.Release(t.Context()))
		time.Sleep(200 * time.Millisecond)
		links[2].Set(func(l *locktest.Link) { l.Refuse, l.Hook = nil, nil })
		time.Sleep(3 * time.Second)
		locktest.WantFree(t, links, "job")
	})
}

// TestQueueOnAQuorumIsNotHeldUpByPlacesLeftBehind counts hand-overs on nodes
// that keep a queue. The delays of the links differ from request to request.
func TestQueueOnAQuorumIsNotHeldUpByPlacesLeftBehind(t *testing.T) {
	for _, n := range []int{3, 5} {
		synctest.Test(t, func(t *testing.T) {
			const clients, each = 4, 25
			links, nodes := locktest.NewLinks(t, n)
			for _, l := range links {
				l.Set(func(l *locktest.Link) {
					l.Hook = func(node.Request) { time.Sleep(rand.N(2 * time.Millisecond)) }
				})
			}
			start := time.Now()
			var all sync.WaitGroup
			for range clients {
				c := locktest.NewClient(t, nodes, redlatch.Options{})
				all.Go(func() {
					for range each {
						l, err := c.Lock(t.Context(), "job", nil)
						if err != nil {
							t.Error(err)
							return
						}
						l.Release(t.Context())
					}
				})
			}
			all.Wait()
			// An orphaned place at the head of the queue costs a second.
			if took := time.Since(start); took > clients*each*50*time.Millisecond {
				t.Errorf("N=%d: %d hand-overs took %v", n, clients*each, took)
			}
		})
	}
}

// TestNodeThatIsAlwaysLastIsRepairedToo has one node answer after the others
// have decided every round.
func TestNodeThatIsAlwaysLastIsRepairedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		links[2].Set(func(l *locktest.Link) { l.Refuse = errRefused })
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 3 * time.Second})
		links[2].Set(func(l *locktest.Link) { l.Refuse, l.Back = nil, 20*time.Millisecond })
		time.Sleep(5 * time.Second)
		if links[2].Holder(t, "job") == "" {
			t.Error("the node that answers last never got the lock it missed")
		}
		l.Release(t.Context())
		time.Sleep(time.Second)
		locktest.WantFree(t, links, "job")
	})
}

// TestRepairThatComesLateLeavesNothing delays a repair until the lock was
// released and others have held it and raised the fence. After the short delay
// the grant is undone. After the long one nobody waits for the answer any more.
func TestRepairThatComesLateLeavesNothing(t *testing.T) {
	for _, late := range []time.Duration{100 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, 3)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second, NoKeepAlive: true})
			synctest.Wait()
			links[2].Set(func(l *locktest.Link) { l.Lag = map[node.Op]time.Duration{node.OpRepair: late} })
			if !links[2].Drop("job") {
				t.Fatal("there was nothing to forget")
			}
			// An answer in the very moment in which the round is decided is
			// used by the next round only.
			for links[2].Count(node.OpRepair) == 0 {
				must(t, l.Extend(t.Context()))
				synctest.Wait()
			}
			l.Release(t.Context())
			locktest.MustLock(t, c, "job", redlatch.LockOptions{}).Release(t.Context())
			time.Sleep(5 * time.Second)
			locktest.WantFree(t, links, "job")
		})
	}
}

// TestReleaseOvertakesEarlierProposals has a client whose clock was set forward
// propose a token, learn the time, and win with a lower token, while the first
// proposal is still in flight to one node. It arrives after the release, when
// nobody waits for its answer any more.
func TestReleaseOvertakesEarlierProposals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		for _, l := range links[:2] {
			l.Take(t, "job", "another", 50*time.Millisecond)
		}
		clock := &settableClock{start: time.Now()}
		c := locktest.NewClient(t, nodes, locktest.WithClock(redlatch.Options{NodeTimeout: 250 * time.Millisecond}, clock))
		clock.ahead.Store(int64(3 * time.Second))
		links[2].Set(func(l *locktest.Link) { l.Out = time.Second })
		time.AfterFunc(10*time.Millisecond, func() { links[2].Set(func(l *locktest.Link) { l.Out = 0 }) })
		l := locktest.MustLock(t, c, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		l.Release(t.Context())
		time.Sleep(5 * time.Second)
		locktest.WantFree(t, links, "job")
	})
}

// settableClock is a wall clock that can be set.
type settableClock struct {
	ahead atomic.Int64
	start time.Time
}

func (c *settableClock) Now() time.Time        { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *settableClock) Uptime() time.Duration { return time.Since(c.start) }
