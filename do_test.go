package redlatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/locktest"
)

func TestDoReleasesWhateverBecomesOfTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		failed := errors.New("the work failed")
		err := c.Do(t.Context(), "job", nil, func(ctx context.Context, l *redlatch.Lease) error {
			synctest.Wait()
			if links[0].Holder(t, "job") == "" {
				t.Error("the function ran without the lock")
			}
			return failed
		})
		locktest.WantErr(t, err, failed)
		synctest.Wait()
		locktest.WantFree(t, links, "job")

		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			c.Do(t.Context(), "job", nil, func(context.Context, *redlatch.Lease) error { panic("oh") })
		}()
		synctest.Wait()
		locktest.WantFree(t, links, "job")
	})
}

func TestDoTellsTheFunctionAndTheCallerThatTheLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		err := c.Do(t.Context(), "job", &redlatch.LockOptions{TTL: 2 * time.Second}, func(ctx context.Context, l *redlatch.Lease) error {
			for _, lk := range links {
				lk.Freeze()
			}
			deadline := l.Deadline()
			<-ctx.Done()
			if late := time.Since(deadline); late > 0 {
				t.Errorf("the function was told %v after the deadline", late)
			}
			locktest.WantErr(t, context.Cause(ctx), redlatch.ErrLost)
			return nil // the function did not notice the loss
		})
		locktest.WantErr(t, err, redlatch.ErrLost)
	})
}

func TestDoContextIsTheCallersChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		gone := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := c.Do(ctx, "job", nil, func(ctx context.Context, l *redlatch.Lease) error {
			cancel(gone)
			<-ctx.Done()
			locktest.WantErr(t, context.Cause(ctx), gone)
			if err := l.Err(); err != nil {
				t.Errorf("the lease ended with the caller's context: %v", err)
			}
			return ctx.Err()
		})
		locktest.WantErr(t, err, context.Canceled)
	})
}

func TestWaitingForOneselfIsToldNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := locktest.NewLinks(t, 3)
		c := locktest.NewClient(t, nodes, redlatch.Options{})
		nothing := func(context.Context, *redlatch.Lease) error { return nil }
		err := c.Do(t.Context(), "outer", nil, func(ctx context.Context, l *redlatch.Lease) error {
			if err := c.Do(ctx, "inner", nil, func(ctx context.Context, l *redlatch.Lease) error {
				locktest.WantErr(t, c.Do(ctx, "inner", nil, nothing), redlatch.ErrDeadlock)
				return c.Do(ctx, "outer", nil, nothing)
			}); !errors.Is(err, redlatch.ErrDeadlock) {
				t.Errorf("the outer lock inside itself: %v", err)
			}
			_, err := c.TryLock(ctx, "outer", nil)
			locktest.WantErr(t, err, redlatch.ErrHeld)
			_, err = c.Lock(ctx, "outer", &redlatch.LockOptions{Wait: time.Second})
			locktest.WantErr(t, err, redlatch.ErrHeld)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
