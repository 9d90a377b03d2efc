package redlatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/internal/opt"
)

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
