package redlatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
)

func TestDoReleasesWhateverBecomesOfTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := newLinks(t, 3)
		c := newClient(t, nodes, redlatch.Options{})
		failed := errors.New("the work failed")
		err := c.Do(t.Context(), "job", redlatch.LockOptions{}, func(ctx context.Context, l *redlatch.Lease) error {
			synctest.Wait()
			if links[0].holder(t, "job") == "" {
				t.Error("the function ran without the lock")
			}
			return failed
		})
		wantErr(t, err, failed)
		synctest.Wait()
		wantFree(t, links, "job")

		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			c.Do(t.Context(), "job", redlatch.LockOptions{}, func(context.Context, *redlatch.Lease) error { panic("oh") })
		}()
		synctest.Wait()
		wantFree(t, links, "job")
	})
}

func TestDoTellsTheFunctionAndTheCallerThatTheLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := newLinks(t, 3)
		c := newClient(t, nodes, redlatch.Options{})
		err := c.Do(t.Context(), "job", redlatch.LockOptions{TTL: 2 * time.Second}, func(ctx context.Context, l *redlatch.Lease) error {
			for _, lk := range links {
				lk.freeze()
			}
			deadline := l.Deadline()
			<-ctx.Done()
			if late := time.Since(deadline); late > 0 {
				t.Errorf("the function was told %v after the deadline", late)
			}
			wantErr(t, context.Cause(ctx), redlatch.ErrLost)
			return nil // the function did not notice the loss
		})
		wantErr(t, err, redlatch.ErrLost)
	})
}

func TestDoContextIsTheCallersChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := newLinks(t, 3)
		c := newClient(t, nodes, redlatch.Options{})
		gone := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := c.Do(ctx, "job", redlatch.LockOptions{}, func(ctx context.Context, l *redlatch.Lease) error {
			cancel(gone)
			<-ctx.Done()
			wantErr(t, context.Cause(ctx), gone)
			if err := l.Err(); err != nil {
				t.Errorf("the lease ended with the caller's context: %v", err)
			}
			return ctx.Err()
		})
		wantErr(t, err, context.Canceled)
	})
}

func TestWaitingForOneselfIsToldNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, nodes := newLinks(t, 3)
		c := newClient(t, nodes, redlatch.Options{})
		nothing := func(context.Context, *redlatch.Lease) error { return nil }
		err := c.Do(t.Context(), "outer", redlatch.LockOptions{}, func(ctx context.Context, l *redlatch.Lease) error {
			if err := c.Do(ctx, "inner", redlatch.LockOptions{}, func(ctx context.Context, l *redlatch.Lease) error {
				wantErr(t, c.Do(ctx, "inner", redlatch.LockOptions{}, nothing), redlatch.ErrDeadlock)
				return c.Do(ctx, "outer", redlatch.LockOptions{}, nothing)
			}); !errors.Is(err, redlatch.ErrDeadlock) {
				t.Errorf("the outer lock inside itself: %v", err)
			}
			_, err := c.TryLock(ctx, "outer", redlatch.LockOptions{})
			wantErr(t, err, redlatch.ErrHeld)
			_, err = c.Lock(ctx, "outer", redlatch.LockOptions{Wait: time.Second})
			wantErr(t, err, redlatch.ErrHeld)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}
