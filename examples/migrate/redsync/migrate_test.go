package redsync

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/examples/migrate/contend"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// connect starts three servers that are trusted, and returns both clients on
// them.
func connect(t *testing.T) (*redsync.Redsync, *redlatch.Client) {
	t.Helper()
	rs, locks := open(t)
	check.Must(t, fresh.Declare(t.Context(), locks))
	return rs, locks
}

func open(t *testing.T) (*redsync.Redsync, *redlatch.Client) {
	t.Helper()
	s := servertest.Redis(t, 3)
	rs := connectBefore(s[0].Addr(), s[1].Addr(), s[2].Addr())
	locks, err := connectAfter(s[0].Addr(), s[1].Addr(), s[2].Addr())
	check.Must(t, err)
	t.Cleanup(func() { locks.Close() })
	return rs, locks
}

func TestRedsyncAndRedlatchNeverHoldTogether(t *testing.T) {
	t.Parallel()
	rs, locks := connect(t)
	err := contend.Run(t.Context(), map[string]contend.Side{
		"redsync": func(ctx context.Context, work func(context.Context) error) error { return lockBefore(ctx, rs, work) },
		"redlatch": func(ctx context.Context, work func(context.Context) error) error {
			return lockAfter(ctx, locks, work)
		},
	}, 10, time.Minute)
	if err != nil {
		t.Error(err)
	}
}

func TestEachTellsThatTheOtherHolds(t *testing.T) {
	t.Parallel()
	rs, locks := connect(t)
	err := lockBefore(t.Context(), rs, func(ctx context.Context) error {
		if busy, err := tryAfter(ctx, locks); !busy || err != nil {
			t.Errorf("redlatch sees redsync's lock: %t, %v", busy, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	err = lockAfter(t.Context(), locks, func(ctx context.Context) error {
		if busy, err := tryBefore(ctx, rs.NewMutex("orders/42")); !busy || err != nil {
			t.Errorf("redsync sees redlatch's lock: %t, %v", busy, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLockIsFreedFromElsewhere(t *testing.T) {
	t.Parallel()
	rs, locks := connect(t)
	mutex := rs.NewMutex("orders/42")
	check.Must(t, mutex.LockContext(t.Context()))
	check.Must(t, elsewhereBefore(t.Context(), rs, mutex))
	lease, err := locks.TryLock(t.Context(), "orders/42", nil)
	check.Must(t, err)
	if err := elsewhereAfter(t.Context(), locks, lease); err != nil {
		t.Error(err)
	}
	if busy, err := tryBefore(t.Context(), mutex); busy || err != nil {
		t.Errorf("after Release: held %t, %v", busy, err)
	}
}

// TestLossIsTold takes the lock away.
func TestLossIsTold(t *testing.T) {
	t.Parallel()
	rs, _ := connect(t)
	mutex := rs.NewMutex("orders/42", redsync.WithExpiry(2*time.Second))
	check.Must(t, mutex.LockContext(t.Context()))
	check.Must(t, elsewhereBefore(t.Context(), rs, mutex))
	err := keepBefore(t.Context(), mutex, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if err == nil || err.Error() != "the lock is lost" {
		t.Errorf("keepBefore returns %v", err)
	}
}

// TestRedsyncGoesOnWhileTheNodesSitOut marks servers that redsync has been
// using.
func TestRedsyncGoesOnWhileTheNodesSitOut(t *testing.T) {
	t.Parallel()
	rs, locks := open(t)
	if _, err := admin.New(locks).Init(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := locks.TryLock(t.Context(), "orders/42", nil); !errors.Is(err, redlatch.ErrQuarantine) {
		t.Errorf("redlatch gets %v, want ErrQuarantine", err)
	}
	if err := lockBefore(t.Context(), rs, func(context.Context) error { return nil }); err != nil {
		t.Errorf("redsync gets %v", err)
	}
}
