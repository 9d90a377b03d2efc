//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/node"
)

func TestWaitersOnRealServersAreServedInTheOrderOfTheirArrival(t *testing.T) {
	t.Parallel()
	eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
		const waiters = 8
		began := time.Now()
		var times []time.Duration
		for _, n := range []int{1, 3} {
			servers := servertest.Redis(t, n)
			holder := newClient(t, nodes(servertest.Addresses(servers)...), redlatch.Options{})
			lease := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{})
			waiting := make([]<-chan got, waiters)
			for i := range waiters {
				c := newClient(t, nodes(servertest.Addresses(servers)...), redlatch.Options{})
				waiting[i] = goLock(c, "job", redlatch.LockOptions{})
				eventually(t, patience, inLine(servers, "job", i+1))
			}
			for i := range waiters {
				start := time.Now()
				mustRelease(t, lease)
				var first int
				first, lease = served(t, waiting)
				times = append(times, time.Since(start))
				if first != i {
					stall.Busy(t, starved, began) // one that answers late is passed over
					t.Errorf("%d servers: number %d was served in the place of number %d", n, first, i)
				}
			}
			mustRelease(t, lease)
		}
		// Waiters that are not notified ask within 400 ms, half of them within
		// 200.
		slices.Sort(times)
		if median := times[len(times)/2]; over(t, median, 120*time.Millisecond, began) {
			t.Errorf("the lock was handed on within %v: there were no wakes", times)
		}
	})
}

// TestClusterWakesWhoeverListensOnWhicheverServer uses names with every kind of
// hash tag. The fence and the queue must be in the lock's slot, and a
// notification must reach an inbox that is subscribed on another server of the
// cluster.
func TestClusterWakesWhoeverListensOnWhicheverServer(t *testing.T) {
	t.Parallel()
	servers := startCluster(t)
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, s.Addr())
	}
	eachLibrary(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		timed(t, func(t testing.TB) {
			address := "redis+cluster://" + strings.Join(hosts, "+")
			a := newClient(t, nodes(address), redlatch.Options{NodeTimeout: 2 * time.Second})
			b := newClient(t, nodes(address), redlatch.Options{NodeTimeout: 2 * time.Second})
			began := time.Now()
			var times []time.Duration
			for _, name := range []string{"a", "job 2", "{a}b", "a}b", "{}x", "}{", "a{b", "日本", "{}{a}"} {
				lease := mustLock(t, a, name, redlatch.LockOptions{})
				_, err := a.TryLock(context.Background(), name, nil)
				wantErr(t, err, redlatch.ErrHeld)
				must(t, lease.Extend(context.Background()))
				waiting := goLock(b, name, redlatch.LockOptions{})
				eventually(t, patience, func() error {
					for _, s := range servers {
						for key := range strings.SplitSeq(s.Do("KEYS", "redlatch:1:queue:*"), "\n") {
							if key != "" {
								return nil
							}
						}
					}
					return fmt.Errorf("nobody waits for %s", name)
				})
				start := time.Now()
				mustRelease(t, lease)
				lease = mustGet(t, waiting, patience)
				times = append(times, time.Since(start))
				mustRelease(t, lease)
			}
			// Without a notification the waiter would ask again within 400 ms. Most
			// of the names are on another server than its inbox.
			slices.Sort(times)
			if median := times[len(times)/2]; over(t, median, 200*time.Millisecond, began) {
				t.Errorf("the lock was handed on within %v, half of it above %v: there was no wake", times, median)
			}
		})
	})
	must(t, noKeys(servers)())
	// If the lock's own server has no subscriber, the head is not assumed to be
	// gone: one waiter is notified, and the others keep their places.
	inLineSomewhere := func(want int) func() error {
		return func() error {
			n := 0
			for _, s := range servers {
				if key := s.Do("KEYS", "redlatch:1:queue:*"); key != "" {
					n, _ = strconv.Atoi(s.Do("ZCARD", key))
				}
			}
			if n != want {
				return fmt.Errorf("%d wait, want %d", n, want)
			}
			return nil
		}
	}
	timed(t, func(t testing.TB) {
		start := time.Now()
		for _, name := range []string{"a", "b", "c", "d"} {
			var lease *redlatch.Lease
			var waiting []<-chan got
			for i := range 4 {
				c := newClient(t, open(t, "redis+cluster://"+strings.Join(hosts, "+")), redlatch.Options{NodeTimeout: 2 * time.Second})
				if i == 0 {
					lease = mustLock(t, c, name, redlatch.LockOptions{})
					continue
				}
				waiting = append(waiting, goLock(c, name, redlatch.LockOptions{}))
				eventually(t, patience, inLineSomewhere(i))
			}
			done := 0
			order := handOver(t, lease, waiting, func(int) {
				done++
				if err := inLineSomewhere(len(waiting) - done)(); err != nil {
					stall.Busy(t, starved, start) // so that one lost its place
					t.Errorf("%s: after %d of %d were served: %v", name, done, len(waiting), err)
				}
			})
			if !slices.IsSorted(order) {
				stall.Busy(t, starved, start)
				t.Errorf("%s: they were served in the order %v", name, order)
			}
		}
	})
	eventually(t, undone, nothingLeft(servers, "a"))
}

// TestWaiterThatAnswersLateIsPassedOverAndServedNext has the head of a queue
// answer its notification too late, like a process that gets no processor time:
// neither what it is sent nor what it sends arrives. When the notification has
// expired the next waiter gets the lock. The late one returns to its old place,
// and is served right after it. So a test must not take the leases of a queue
// strictly in the order of arrival without releasing any: on a busy machine it
// would wait for ever, since a waiter that was skipped gets the lock only when
// the one that passed it releases.
func TestWaiterThatAnswersLateIsPassedOverAndServedNext(t *testing.T) {
	t.Parallel()
	for kind := range subscribers {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			timed(t, func(t testing.TB) {
				servers := servertest.Redis(t, 1)
				holder := newClient(t, open(t, servers[0].URL()), redlatch.Options{})
				lease := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{})
				var stopped sync.RWMutex // locked while the head is stopped
				var waiting []<-chan got
				for i := range 3 {
					d := newTap(t, kind, servers[0])
					if i == 0 {
						d.delay = func() {
							stopped.RLock()
							//lint:ignore SA2001 it waits until the head goes on
							stopped.RUnlock()
						}
					}
					waiting = append(waiting, goLock(newClient(t, tapped(servers, d), redlatch.Options{}), "job", redlatch.LockOptions{}))
					eventually(t, patience, inLine(servers, "job", i+1))
				}
				stopped.Lock()
				goOn := sync.OnceFunc(stopped.Unlock)
				defer goOn()
				start := time.Now()
				mustRelease(t, lease)
				first, lease := served(t, waiting)
				if first != 1 {
					stall.Busy(t, starved, start)
					t.Fatalf("number %d was served, want number 2 while number 1 stands still", first+1)
				}
				took := time.Since(start)
				if took < node.TurnLease {
					t.Errorf("the turn of number 1 was taken away after %v", took)
				}
				t.Logf("number 2 had the lock %v after the release", took)
				// However long the lock is held now, number 1 does not get it.
				goOn()
				eventually(t, patience, inLine(servers, "job", 2))
				must(t, lease.Extend(t.Context()))
				mustRelease(t, lease)
				second, lease := served(t, waiting)
				if second != 0 {
					stall.Busy(t, starved, start)
					t.Errorf("number %d was served after number 2, want number 1, which is back in its place", second+1)
				}
				mustRelease(t, lease)
				_, lease = served(t, waiting)
				mustRelease(t, lease)
			})
		})
	}
}
