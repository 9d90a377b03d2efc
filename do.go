package redlatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/internal/opt"
)

// Do waits for the lock like Lock, runs fn under it, and releases it however fn
// ends. The context of fn is a child of ctx and ends at the lease's deadline at
// the latest. fn must stop when it ends.
//
// Do returns fn's error. If the lock was lost while fn ran, the error is also
// ErrLost, even if fn returned nil: another client may have held the lock by
// then. LockOptions.NoReleaseWait has Do return before the release is confirmed.
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
		var releaseErr error
		if lost == nil && opt.Value(opts).NoReleaseWait {
			lease.releaseLater(context.WithoutCancel(ctx))
		} else {
			releaseErr = lease.Release(context.WithoutCancel(ctx))
		}
		cancel(ErrReleased)
		switch {
		case errors.Is(lost, ErrLost):
			err = errors.Join(err, lost)
		case errors.Is(releaseErr, ErrLost):
			err = errors.Join(err, releaseErr)
		case releaseErr != nil:
			// fn ran under the lock, so this is no failure of fn. The lock
			// expires by its time to live.
			lease.warnNotFreed(releaseErr)
		}
	}()
	return fn(work, lease)
}

// releaseLater sends the release, waits for its result in the background, and
// logs it if it is not as it should be.
func (l *Lease) releaseLater(ctx context.Context) {
	sent := l.claim.Release(ctx, (*holding)(l), false)
	l.c.cluster.Go(func() {
		switch err := l.freed(ctx, sent); {
		case errors.Is(err, ErrLost):
			l.c.opts.Logger.Warn("redlatch: lock is lost", "name", l.name, "token", uint64(l.Token()), "cause", err)
		case err != nil:
			l.warnNotFreed(err)
		}
	})
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

// Lead runs fn in one process of many, the leader. It waits for the lock, which
// only the leader holds, and then runs fn. The context of fn is a child of ctx
// and ends when this process no longer leads, at the lease's deadline at the
// latest. fn must stop when it ends.
//
// When fn returns while this process leads, it resigns: Lead releases the lock,
// so that another candidate leads at once, and returns fn's error. When the
// lock was lost, Lead waits until fn has returned, drops its error and waits
// for the lock again. So fn never runs twice at a time. MaxHold limits a term:
// after it the process waits again, behind those that already wait.
//
// Lead waits for servers without limit, and logs once that it does. Only with
// Wait or Tries in opts, which limit each candidacy, does it return the error
// of Lock. The lease has the token of the term: pass it to what the leader
// writes to, because a leader that is paused does not notice that another one
// leads.
func (c *Client) Lead(ctx context.Context, name string, opts *LockOptions, fn func(ctx context.Context, lease *Lease) error) error {
	set := opt.Value(opts)
	if set.Shared || set.Slots != 0 {
		return &ConfigError{Field: "Shared", Value: fmt.Sprintf("%v with %d Slots", set.Shared, set.Slots), Bound: "left out, and Slots too: there is one leader"}
	}
	patient := set.Wait == 0 && set.Tries == 0
	warned := false
	for {
		var leads bool
		var lost error
		err := c.Do(ctx, name, opts, func(ctx context.Context, l *Lease) error {
			leads, warned = true, false
			err := fn(ctx, l)
			if lost = l.Err(); !errors.Is(lost, ErrLost) {
				lost = nil
			}
			return err
		})
		switch {
		case leads && lost != nil:
			c.opts.Logger.Warn("redlatch: lost leadership; campaigning again", "name", name, "err", lost)
		case !leads && patient && errors.Is(err, ErrNoQuorum):
			if !warned {
				c.opts.Logger.Warn("redlatch: no quorum; waiting to campaign", "name", name, "err", err)
			}
			warned = true
		default:
			return err
		}
	}
}
