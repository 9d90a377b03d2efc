// Package margin ends work some time before a lease ends, so that it is over when
// another client can hold the lock.
package margin

import (
	"context"
	"errors"
	"time"
)

// ErrEarly is the cause of a context that ended before its lease.
var ErrEarly = errors.New("redlatch: the lock was not extended in time, and its work was stopped before the deadline")

// Context returns a child of ctx that ends when no more than margin is left of a
// lease, with ErrEarly as its cause. A lease that is extended in the background
// has more left. remaining is the lease's.
func Context(ctx context.Context, remaining func() time.Duration, margin time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for ctx.Err() == nil {
			left := remaining() - margin
			if left <= 0 {
				cancel(ErrEarly)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(left):
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
