package rueidislock

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/examples/migrate/contend"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	redlatchrueidis "github.com/redlatch/redlatch/store/redis/rueidis"
)

type work = func(context.Context) error

// old asks again after a while, should rueidislock miss that the lock is free.
func old(locker rueidislock.Locker) contend.Side {
	return func(ctx context.Context, w work) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return lockBefore(ctx, locker, w)
	}
}

func TestWithOneKeyAndThePrefixBothExcludeEachOther(t *testing.T) {
	t.Parallel()
	address := servertest.Redis(t, 1)[0].Addr()
	locker, err := connectBefore(address)
	check.Must(t, err)
	defer locker.Close()
	locks, err := connectAfter(address)
	check.Must(t, err)
	defer locks.Close()
	contend.Run(t, map[string]contend.Side{
		"rueidislock": old(locker),
		"redlatch":    func(ctx context.Context, w work) error { return lockAfter(ctx, locks, w) },
	})
}

// TestWithBothHeldEitherMayBeLeftOut is the change-over where the keys are not
// the same: rueidislock's three, and redlatch's one.
func TestWithBothHeldEitherMayBeLeftOut(t *testing.T) {
	t.Parallel()
	address := servertest.Redis(t, 1)[0].Addr()
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{address}},
	})
	check.Must(t, err)
	defer locker.Close()
	nodes, err := redlatchrueidis.Nodes("redis://" + address)
	check.Must(t, err)
	locks, err := redlatch.New(nodes, nil)
	check.Must(t, err)
	defer locks.Close()
	nested := func(ctx context.Context, w work) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return both(ctx, locker, locks, w)
	}
	contend.Run(t, map[string]contend.Side{"rueidislock": old(locker), "both": nested})
	contend.Run(t, map[string]contend.Side{
		"both":     nested,
		"redlatch": func(ctx context.Context, w work) error { return lockAfter(ctx, locks, w) },
	})
}
