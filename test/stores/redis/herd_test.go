//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestServerThatLostItsDataComesBackHoweverManyNoticeIt has many clients notice at
// the same time that a server is empty. Each marks it, and some mark it again: that
// must end at once, since each marking begins a quarantine.
func TestServerThatLostItsDataComesBackHoweverManyNoticeIt(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	addresses := servertest.Addresses(servers)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	first := newClient(t, open(t, addresses...), quick)
	mustRelease(t, mustLock(t, first, "job", redlatch.LockOptions{}))
	epoch := func() string { return strings.Fields(servers[1].Do("GET", "redlatch:1:marker") + " - - -")[2] }
	eventually(t, patience, func() error {
		if epoch() != "00000001" {
			return fmt.Errorf("it is marked %s", epoch())
		}
		return nil
	})
	for i := range 24 {
		c := newClient(t, open(t, addresses...), quick)
		go func() {
			for ctx.Err() == nil {
				if l, err := c.TryLock(ctx, fmt.Sprint("name ", i), nil); err == nil {
					l.Release(ctx)
				}
				time.Sleep(20 * time.Millisecond) // so that others get a turn
			}
		}()
	}
	time.Sleep(200 * time.Millisecond) // they all run
	servers[1].Do("FLUSHALL")
	// Several quarantines of two seconds, on a busy machine.
	eventually(t, 20*time.Second, func() error { return trusted(servers[1]) })
	t.Logf("its epoch is %s", epoch())
}
