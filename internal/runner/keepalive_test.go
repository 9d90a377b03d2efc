package runner_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
)

// TestManyLeasesOnSlowNodesAreAllKept has nodes that answer after 100 ms, and so
// many leases that hundreds of extensions are in flight at any time.
func TestManyLeasesOnSlowNodesAreAllKept(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			const leases = 1000
			links, nodes := locktest.NewLinks(t, n)
			c := locktest.NewClient(t, nodes, redlatch.Options{})
			held := make([]*redlatch.Lease, leases)
			for i := range held {
				held[i] = locktest.MustLock(t, c, fmt.Sprint("lease ", i), redlatch.LockOptions{TTL: 1200 * time.Millisecond})
			}
			for _, l := range links {
				l.Set(func(l *locktest.Link) { l.Out = 100 * time.Millisecond })
			}
			time.Sleep(2 * time.Second)
			lost := 0
			for _, l := range held {
				if l.Err() != nil {
					lost++
				}
			}
			if lost > 0 {
				t.Errorf("N=%d: %d of %d leases are lost, though every node answers in 100 ms", n, lost, leases)
			}
		})
	}
}

// TestExtensionsOfLeasesThatCameTogetherAreSpread acquires many leases at the
// same moment. Their extensions must not all come at the same moment.
func TestExtensionsOfLeasesThatCameTogetherAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leases = 1000
		links, nodes := locktest.NewLinks(t, 1)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		for i := range leases {
			locktest.MustLock(t, c, fmt.Sprint("lease ", i), redlatch.LockOptions{TTL: 3 * time.Second})
		}
		start, before, most := time.Now(), 0, 0
		for time.Since(start) < 3*time.Second {
			time.Sleep(10 * time.Millisecond)
			now := links[0].Count(node.OpExtend)
			before, most = now, max(most, now-before)
		}
		if before < 2*leases {
			t.Errorf("%d leases of 3s were extended %d times in 3s", leases, before)
		}
		if most > leases/10 {
			t.Errorf("%d of %d leases were extended within 10 ms", most, leases)
		}
	})
}

// TestCloseOfManyLeasesOnAFrozenServerIsBounded has a server that does not
// answer. Close releases all leases concurrently, and waits no longer than for
// one lease.
func TestCloseOfManyLeasesOnAFrozenServerIsBounded(t *testing.T) {
	for _, n := range []int{1, 3} {
		for _, deaf := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				links, nodes := locktest.NewLinks(t, n)
				c := locktest.NewClient(t, nodes, redlatch.Options{NodeTimeout: time.Second})
				for i := range 1000 {
					locktest.MustLock(t, c, fmt.Sprint("lease ", i), redlatch.LockOptions{})
				}
				for _, l := range links {
					l.Set(func(l *locktest.Link) { l.Deaf = deaf })
					l.Freeze()
				}
				start := time.Now()
				c.Close()
				if took := time.Since(start); took > 2200*time.Millisecond {
					t.Errorf("N=%d: Close took %v with a node time limit of 1s", n, took)
				}
			})
		}
	}
}

// TestCloseReleasesManyLeasesAtOnce measures the time of Close if every node
// answers in 100 ms.
func TestCloseReleasesManyLeasesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leases = 1000
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		for i := range leases {
			locktest.MustLock(t, c, fmt.Sprint("lease ", i), redlatch.LockOptions{})
		}
		synctest.Wait()
		for _, l := range links {
			l.Set(func(l *locktest.Link) { l.Out = 100 * time.Millisecond })
		}
		start := time.Now()
		c.Close()
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
		for i := range leases {
			locktest.WantFree(t, links, fmt.Sprint("lease ", i))
		}
	})
}
