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

// open starts three servers, and returns both clients on them.
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
	rs, locks := open(t)
	check.Must(t, fresh.Declare(t.Context(), locks))
	contend.Run(t, map[string]contend.Side{
		"redsync":  func(ctx context.Context, work func(context.Context) error) error { return lockBefore(ctx, rs, work) },
		"redlatch": func(ctx context.Context, work func(context.Context) error) error { return lockAfter(ctx, locks, work) },
	})
	// Each tells that the other holds.
	check.Must(t, lockBefore(t.Context(), rs, func(ctx context.Context) error {
		if busy, err := tryAfter(ctx, locks); !busy || err != nil {
			t.Errorf("redlatch sees redsync's lock: %t, %v", busy, err)
		}
		return nil
	}))
	check.Must(t, lockAfter(t.Context(), locks, func(ctx context.Context) error {
		if busy, err := tryBefore(ctx, rs.NewMutex("orders/42")); !busy || err != nil {
			t.Errorf("redsync sees redlatch's lock: %t, %v", busy, err)
		}
		return nil
	}))
	// Locks are freed from elsewhere, and the loss is told.
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
	lease, err := locks.TryLock(t.Context(), "orders/42", nil)
	check.Must(t, err)
	check.Must(t, elsewhereAfter(t.Context(), locks, lease))
	if busy, err := tryBefore(t.Context(), mutex); busy || err != nil {
		t.Errorf("after Release: held %t, %v", busy, err)
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
