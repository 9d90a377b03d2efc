package redlatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/internal/optional"
)

// Do waits for the lock like Lock, runs fn under it, and releases it however fn
// ends. The context of fn is a child of ctx and ends at the lease's deadline at
// the latest. fn must stop when it ends.
//
// Do returns fn's error. If the lock was lost while fn ran, the error is also
// ErrLost, even if fn returned nil: another client may have held the lock by
// then. LockOptions.NoReleaseWait has Do return before the release is confirmed.
func (c *Client) Do(ctx context.Context, name string, opts *LockOptions, fn func(ctx context.Context, lease *Lease) error) error {
	lease, err := c.Lock(ctx, name, opts)
	if err != nil {
		return err
	}
	return lease.run(ctx, opts, fn)
}

// TryDo runs fn under the lock like Do if the lock is free, and skips it while
// another client holds the lock: then ran is false, and the error is nil. Any other
// error says why it is not known who holds the lock; fn did not run.
//
// It asks once and does not wait. If several clients ask several nodes at the same
// moment, each may get some of the nodes and none a quorum, so that all skip. Where
// one of them must run fn, set LockOptions.Wait, and TryDo skips only after that
// time; or use Once.
func (c *Client) TryDo(ctx context.Context, name string, opts *LockOptions, fn func(ctx context.Context, lease *Lease) error) (ran bool, err error) {
	set := optional.Value(opts)
	set.Wait = cmp.Or(set.Wait, NoWait)
	lease, err := c.lock(ctx, name, set)
	switch {
	case errors.Is(err, ErrHeld):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, lease.run(ctx, &set, fn)
}

// run runs fn under the lease, and releases it.
func (l *Lease) run(ctx context.Context, opts *LockOptions, fn func(ctx context.Context, lease *Lease) error) (err error) {
	outer, _ := ctx.Value(heldKey{}).(*held)
	work, cancel := context.WithCancelCause(context.WithValue(ctx, heldKey{}, &held{l, outer}))
	stop := context.AfterFunc(l.Context(), func() { cancel(context.Cause(l.Context())) })
	defer func() {
		stop()
		lost := l.Err()
		var releaseErr error
		if lost == nil && optional.Value(opts).NoReleaseWait {
			l.releaseLater(context.WithoutCancel(ctx))
		} else {
			releaseErr = l.Release(context.WithoutCancel(ctx))
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
			l.warnNotFreed(releaseErr)
		}
	}()
	return fn(work, l)
}

// releaseLater sends the release, waits for its result in the background, and
// logs it if it is not as it should be.
func (l *Lease) releaseLater(ctx context.Context) {
	sent := l.claim.Release(ctx, (*holding)(l), false)
	l.c.cluster.Go(func() {
		switch err := l.freed(ctx, sent); {
		case errors.Is(err, ErrLost):
			l.c.opts.Logger.Warn("redlatch: lock is lost", "name", l.name, "token", l.Token().String(), "cause", err)
		case err != nil:
			l.warnNotFreed(err)
		}
	})
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
// Lead waits for servers without limit, and logs once that it does. Only with Wait in
// opts, which limits each candidacy, does it return the error of Lock. The lease has
// the token of the term: pass it to what the leader writes to, because a leader that is
// paused does not notice that another one leads.
func (c *Client) Lead(ctx context.Context, name string, opts *LockOptions, fn func(ctx context.Context, lease *Lease) error) error {
	set := optional.Value(opts)
	if set.Shared || set.Slots != 0 {
		return &ConfigError{Field: "Shared", Value: fmt.Sprintf("%v with %d Slots", set.Shared, set.Slots), Bound: "left out, and Slots too: there is one leader"}
	}
	patient := set.Wait == 0
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
