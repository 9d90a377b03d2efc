package redlatch

import (
	"context"
	"errors"
)

// Do waits for the lock like Lock, runs fn under it, and releases it however fn
// ends. The context of fn is a child of ctx and ends at the lease's deadline at
// the latest. fn must stop when it ends.
//
// Do returns fn's error. If the lock was lost while fn ran, the error is also
// ErrLost, even if fn returned nil: another client may have held the lock by
// then.
func (c *Client) Do(ctx context.Context, name string, opts *LockOptions, fn func(ctx context.Context, lease *Lease) error) (err error) {
	lease, err := c.Lock(ctx, name, opts)
	if err != nil {
		return err
	}
	work, cancel := context.WithCancelCause(withHeld(ctx, lease))
	stop := context.AfterFunc(lease.Context(), func() { cancel(context.Cause(lease.Context())) })
	defer func() {
		stop()
		lost := lease.Err()
		releaseErr := lease.Release(context.WithoutCancel(ctx))
		cancel(ErrReleased)
		switch {
		case errors.Is(lost, ErrLost):
			err = errors.Join(err, lost)
		case errors.Is(releaseErr, ErrLost):
			err = errors.Join(err, releaseErr)
		case releaseErr != nil:
			// fn ran under the lock, so this is no failure of fn. The lock
			// expires by its time to live.
			c.opts.Logger.Warn("redlatch: lock could not be released; it will expire after its TTL", "name", name, "err", releaseErr)
		}
	}()
	return fn(work, lease)
}

// held is a chain, kept in contexts, of the leases that Do holds around a
// function.
type held struct {
	lease *Lease
	outer *held
}

type heldKey struct{}

func withHeld(ctx context.Context, l *Lease) context.Context {
	outer, _ := ctx.Value(heldKey{}).(*held)
	return context.WithValue(ctx, heldKey{}, &held{lease: l, outer: outer})
}

// heldOn reports whether Do already holds the key for this context: a caller
// that waited for it would wait for itself.
func heldOn(ctx context.Context, c *Client, key string) bool {
	h, _ := ctx.Value(heldKey{}).(*held)
	for ; h != nil; h = h.outer {
		if h.lease.c == c && h.lease.claim.Key() == key && h.lease.Remaining() > 0 {
			return true
		}
	}
	return false
}
