package runner_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// firstServed has each host wait for the lock, one after the other. It reports
// when one of them has it. That host releases it at once.
func firstServed(t *testing.T, hosts ...*locktest.Host) <-chan time.Time {
	served := make(chan time.Time, len(hosts))
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	for _, h := range hosts {
		go func() {
			l, err := h.Lock(ctx, "job", &redlatch.LockOptions{Wait: 100 * time.Hour})
			if err != nil {
				return
			}
			served <- time.Now()
			l.Release(context.Background())
		}()
		time.Sleep(time.Millisecond)
	}
	return served
}

func wantServedWithin(t *testing.T, served <-chan time.Time, since time.Time, limit time.Duration) {
	t.Helper()
	select {
	case at := <-served:
		if late := at.Sub(since); late > limit {
			t.Errorf("the lock was had %v after it was free, want within %v", late, limit)
		}
	case <-time.After(time.Minute):
		t.Error("nobody had the lock a minute after it was free")
	}
}

// A client that can reach a majority gets the lock within a second after it is
// free, whatever the other clients do.

func TestLowestTicketThatIsCutOffHoldsUpNobody(t *testing.T) {
	for _, down := range []int{2, 3, 4} {
		locktest.Run(t, fmt.Sprintf("node %d is down", down+1), func(t *testing.T) {
			hosts := locktest.NewHosts(t, 4, 5, redlatch.Options{})
			first := locktest.MustLock(t, hosts[3].Client, "job", redlatch.LockOptions{})
			synctest.Wait() // until it is on every node
			firstServed(t, hosts[0])
			served := firstServed(t, hosts[1], hosts[2])
			hosts[0].Links[2:].Cut()
			for _, h := range hosts[1:] {
				h.Links[down].Cut()
			}
			first.Release(t.Context())
			wantServedWithin(t, served, time.Now(), time.Second)
		})
	}
}

func TestLowestTicketThatWasAlwaysCutOffHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 3, 5, redlatch.Options{})
		first := locktest.MustLock(t, hosts[2].Client, "job", redlatch.LockOptions{})
		synctest.Wait() // until it is on every node
		hosts[0].Links[2:].Freeze()
		hosts[1].Links[4].Cut()
		firstServed(t, hosts[0])
		served := firstServed(t, hosts[1])
		time.Sleep(5 * time.Second)
		first.Release(t.Context())
		wantServedWithin(t, served, time.Now(), time.Second)
	})
}

func TestEqualTicketsAreSettled(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5} {
		for crowd := 2; crowd <= 6; crowd += 2 {
			locktest.Run(t, fmt.Sprintf("%d on %d nodes", crowd, n), func(t *testing.T) {
				hosts := locktest.NewHosts(t, crowd, n, redlatch.Options{})
				// All arrive in the same moment of virtual time, so their
				// tickets are the same.
				var all sync.WaitGroup
				start := time.Now()
				for _, h := range hosts {
					all.Go(func() {
						l := locktest.MustLock(t, h.Client, "job", redlatch.LockOptions{})
						l.Release(t.Context())
					})
				}
				all.Wait()
				if took := time.Since(start); took > time.Second {
					t.Errorf("%d callers were through after %v", crowd, took)
				}
			})
		}
	}
}

func TestReleaseThatReachesAMinorityAloneIsOutlived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 3, 5, redlatch.Options{})
		first := locktest.MustLock(t, hosts[2].Client, "job", redlatch.LockOptions{TTL: 3 * time.Second})
		synctest.Wait() // until it is on every node
		served := firstServed(t, hosts[:2]...)
		hosts[2].Links[2:].Cut() // for good: the release cannot be repeated there
		start := time.Now()
		first.Release(t.Context())
		wantServedWithin(t, served, start.Add(3*time.Second), time.Second)
	})
}

func TestSplitVotesAreSettledByOrder(t *testing.T) {
	rounds := func(yield bool) (total int64) {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int64
			hosts := locktest.NewHosts(t, 5, 5, redlatch.Options{Observer: locktest.Rounds(func(r observe.RoundEnd) {
				if r.Op == node.OpAcquire {
					asked.Add(1)
				}
			})})
			for i, h := range hosts {
				for j, l := range h.Links {
					// Each is near one node, and is granted it before the
					// others' requests arrive.
					l.Set(func(l *locktest.Link) {
						l.Out = time.Millisecond
						if i == j {
							l.Out = 0
						}
						l.IgnoreYields = !yield // a client with a minority keeps it
					})
				}
			}
			for range 20 {
				var all sync.WaitGroup
				for _, h := range hosts {
					all.Go(func() {
						l := locktest.MustLock(t, h.Client, "job", redlatch.LockOptions{})
						l.Release(t.Context())
					})
				}
				all.Wait()
				time.Sleep(time.Second)
			}
			total = asked.Load()
		})
		return total
	}
	// Each of the hundred needs two rounds: one that queues it, and one after
	// its notification.
	with, without := rounds(true), rounds(false)
	t.Logf("rounds for a hundred locks of five at once: %d, without yielding %d", with, without)
	const most = 230
	if with > most {
		t.Errorf("%d rounds, want at most %d", with, most)
	}
	if without <= most {
		t.Errorf("only %d rounds without yielding: this test cannot tell", without)
	}
}

func TestNodeThatOffersALockLateIsTakenToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := locktest.NewHosts(t, 3, 5, redlatch.Options{})
		first := locktest.MustLock(t, hosts[2].Client, "job", redlatch.LockOptions{})
		synctest.Wait() // until it is on every node
		// The notification of one node arrives long after the lease was
		// acquired.
		hosts[0].Links[4].Set(func(l *locktest.Link) { l.WakeLag = 100 * time.Millisecond })
		lease := make(chan *redlatch.Lease)
		go func() { lease <- locktest.MustLock(t, hosts[0].Client, "job", redlatch.LockOptions{}) }()
		time.Sleep(time.Millisecond)
		first.Release(t.Context())
		l := <-lease
		time.Sleep(200 * time.Millisecond)
		if hosts[0].Links[4].Holder(t, "job") == "" {
			t.Error("the lease does not stand on the node whose wake came late")
		}
		l.Release(t.Context())
		synctest.Wait()
		locktest.WantFree(t, hosts[0].Links, "job")
	})
}
