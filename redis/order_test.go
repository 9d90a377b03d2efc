//go:build unix

package redis_test

import (
	"fmt"
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
				mustRelease(t, lease)
				lease = mustGet(t, leases[i], 10*time.Second)
				if first := <-served; first != i {
					t.Errorf("%d servers: number %d was served in the place of number %d", n, first, i)
				}
			}
			mustRelease(t, lease)
			eventually(t, 10*time.Second, nothingLeft(servers, "job"))
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
		best := time.Hour
		for i, name := range []string{"a", "job 2", "{a}b", "a}b", "{}x", "}{", "a{b", "日本", "{}{a}"} {
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
			if i > 0 {
				best = min(best, time.Since(start))
			}
			mustRelease(t, lease)
		}
		if best > 200*time.Millisecond {
			t.Errorf("the lock was handed on within %v at the best: there was no wake", best)
		}
	})
	eventually(t, 10*time.Second, nothingLeft(servers, "a"))
}
