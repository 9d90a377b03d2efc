//go:build unix

package redis_test

import (
	"context"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// TestShrinkingToOneServerLetsNoSecondHolderIn changes the membership from three
// servers to one, while a lease is held on the other two. For one server the
// guard is off by default.
func TestShrinkingToOneServerLetsNoSecondHolderIn(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		servers := servertest.Redis(t, 3)
		a := servertest.Addresses(servers)
		three := newClient(t, open(t, a...), quick)
		must(t, cycle(three))
		l := hold(t, three, servers...)
		servers[0].Do("DEL", "job") // two servers are enough
		one := laterClient(t, quick, a[0])
		if _, err := admin.New(one).Init(context.Background(), &admin.InitOptions{Former: open(t, a...)}); err != nil {
			t.Fatal(err)
		}
		if l.Remaining() <= 0 {
			stall.TooLate(t, "the lease ended before the change")
		}
		_, err := one.TryLock(context.Background(), "job", nil)
		if err == nil && l.Remaining() > 0 {
			exclusion.Never(t, "two holders: the first for %v yet", l.Remaining())
		}
		wantErr(t, err, redlatch.ErrNoQuorum, redlatch.ErrQuarantine)
		wantNoSecond(t, one, l)
		eventually(t, patience, func() error { return cycle(one) })
	})
}
