package runner_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
)

// TestManyLeasesOnSlowNodesAreAllKept has nodes that answer after 100 ms, and so
// many leases that hundreds of extensions are in flight at any time.
func TestManyLeasesOnSlowNodesAreAllKept(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			const leases = 1000
			links, c := locktest.New(t, n, redlatch.Options{})
			held := make([]*redlatch.Lease, leases)
			for i := range held {
				held[i] = locktest.MustLock(t, c, fmt.Sprint("lease ", i), redlatch.LockOptions{TTL: 1200 * time.Millisecond})
			}
			links.Set(func(l *locktest.Link) { l.Out = 100 * time.Millisecond })
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

// TestCloseOfManyLeasesOnAFrozenServerIsBounded has a server that does not
// answer. Close releases all leases concurrently, and waits no longer than for
// one lease.
func TestCloseOfManyLeasesOnAFrozenServerIsBounded(t *testing.T) {
	for _, n := range []int{1, 3} {
		for _, deaf := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				links, c := locktest.New(t, n, redlatch.Options{NodeTimeout: time.Second})
				for i := range 200 {
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
