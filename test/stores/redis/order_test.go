//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
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
	hosts := servertest.Hosts(servers)
	eachLibrary(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		timed(t, func(t testing.TB) {
			address := "redis+cluster://" + strings.Join(hosts, "+")
			a := newClient(t, nodes(address), redlatch.Options{})
			b := newClient(t, nodes(address), redlatch.Options{})
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
				c := newClient(t, open(t, "redis+cluster://"+strings.Join(hosts, "+")), redlatch.Options{})
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
