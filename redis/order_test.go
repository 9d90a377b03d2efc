//go:build unix

package redis_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redistest"
)

func TestWaitersOnRealServersAreServedInTheOrderOfTheirArrival(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		const waiters = 8
		var times []time.Duration
		for _, n := range []int{1, 3} {
			servers := redistest.Start(t, n)
			holder := newClient(t, nodes(redistest.Addresses(servers)...), redlatch.Options{})
			lease := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{})
			served := make(chan int, waiters)
			leases := make([]<-chan got, waiters)
			for i := range waiters {
				c := newClient(t, nodes(redistest.Addresses(servers)...), redlatch.Options{})
				in, out := goLock(c, "job", redlatch.LockOptions{}), make(chan got, 1)
				leases[i] = out
				go func() {
					g := <-in
					served <- i
					out <- g
				}()
				eventually(t, 10*time.Second, inLine(servers, "job", i+1))
			}
			for i := range waiters {
				start := time.Now()
				mustRelease(t, lease)
				lease = mustGet(t, leases[i], 10*time.Second)
				times = append(times, time.Since(start))
				if first := <-served; first != i {
					t.Errorf("%d servers: number %d was served in the place of number %d", n, first, i)
				}
			}
			mustRelease(t, lease)
		}
		// Those who are not woken look within 400 ms, half of them within 200.
		slices.Sort(times)
		if median := times[len(times)/2]; median > 120*time.Millisecond {
			t.Errorf("the lock was handed on within %v: there were no wakes", times)
		}
	})
}

// TestClusterWakesWhoeverListensOnWhicheverServer has names that hash in every
// way there is: the queue must be in the lock's slot, and a wake reach an inbox
// that is subscribed to on another server of the cluster.
func TestClusterWakesWhoeverListensOnWhicheverServer(t *testing.T) {
	t.Parallel()
	servers := startCluster(t)
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, s.Addr())
	}
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		address := "redis+cluster://" + strings.Join(hosts, "+")
		a := newClient(t, nodes(address), redlatch.Options{NodeTimeout: 2 * time.Second})
		b := newClient(t, nodes(address), redlatch.Options{NodeTimeout: 2 * time.Second})
		var times []time.Duration
		for _, name := range []string{"a", "job 2", "{a}b", "a}b", "{}x", "}{", "a{b", "日本", "{}{a}"} {
			lease := mustLock(t, a, name, redlatch.LockOptions{})
			waiting := goLock(b, name, redlatch.LockOptions{})
			eventually(t, 10*time.Second, func() error {
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
			lease = mustGet(t, waiting, 5*time.Second)
			times = append(times, time.Since(start))
			mustRelease(t, lease)
		}
		// Without a wake the waiter would ask again within 400 ms. Most of the
		// names are on another server than its inbox.
		slices.Sort(times)
		if median := times[len(times)/2]; median > 200*time.Millisecond {
			t.Errorf("the lock was handed on within %v, half of it above %v: there was no wake", times, median)
		}
	})
	// Where nobody listens on the lock's own server, the first in line is not
	// taken for gone: one is woken, and the others keep their places.
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
			eventually(t, 10*time.Second, inLineSomewhere(i))
		}
		for i, in := range waiting {
			mustRelease(t, lease)
			lease = mustGet(t, in, 5*time.Second)
			if err := inLineSomewhere(len(waiting) - 1 - i)(); err != nil {
				t.Errorf("%s: after %d of %d were served: %v", name, i+1, len(waiting), err)
			}
		}
		mustRelease(t, lease)
	}
	eventually(t, 10*time.Second, nothingLeft(servers, "a"))
}
