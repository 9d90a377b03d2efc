package redlatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/internal/runner"
)

// TryLock asks for the lock once, in one round, and does not wait. It returns
// a *HeldError if another has it, and a *QuorumError if too few nodes
// answered. The lease is not bound to ctx.
func (c *Client) TryLock(ctx context.Context, name string, opts LockOptions) (*Lease, error) {
	opts.Tries = 1
	return c.lock(ctx, name, opts)
}

// Lock waits until it has the lock, ctx ends, or the bounds of opts are
// reached. The lease is not bound to ctx. If ctx ends, the error is the
// context's, and says what Lock waited for; it is not ErrHeld or ErrNoQuorum.
//
// It waits for holders and for servers alike: for whatever can pass by itself.
// That is another holder, too few nodes that answer, nodes in quarantine, a
// change of the membership in progress (ErrChanging). It does not matter whether
// an outage is there when Lock is called or begins later. What cannot pass by
// itself, which is any other *ConfigError, is returned at once.
//
//   - With Wait or a deadline of ctx, Lock waits until that. With Tries, it asks
//     so many times at the most.
//   - With none of these, it waits for a holder without end, and for servers for
//     OutagePatience each time a quorum of them is gone, but for no fewer than
//     three rounds: nodes that miss the time limit of one round may be slow.
//
// At the end of the wait it returns what kept it last: a *HeldError or a
// *QuorumError; if ctx ended, the error of ctx, with the same in its text.
//
// Locks are not re-entrant: a second Lock of the same name waits for the first
// to be released, whoever asks.
func (c *Client) Lock(ctx context.Context, name string, opts LockOptions) (*Lease, error) {
	return c.lock(ctx, name, opts)
}

func (c *Client) lock(ctx context.Context, name string, opts LockOptions) (lease *Lease, err error) {
	if ctx.Err() != nil {
		return nil, endedError(ctx, nil)
	}
	a, err := c.newAttempt(ctx, name, opts)
	if err != nil && c.cluster.Learn(ctx, err) {
		a, err = c.newAttempt(ctx, name, opts)
	}
	if err != nil {
		return nil, err
	}
	if a.opts.Tries == 0 && a.opts.Wait == 0 && heldOn(ctx, c, a.run.Key()) {
		return nil, fmt.Errorf("%w: %q", ErrDeadlock, name)
	}
	// Close waits for us, so that nothing is granted that nobody undoes.
	if !c.cluster.Start() {
		return nil, ErrClosed
	}
	defer c.cluster.Done()
	if o := c.opts.Observer; o != nil {
		ctx = o.LockStart(ctx, LockStart{Name: name, TTL: a.opts.TTL, Nodes: len(c.cluster.Members())})
		a.ctx = ctx
		a.run.Observe(ctx)
		defer func() {
			end := LockEnd{Name: name, Rounds: a.run.Rounds(), Waited: a.run.Waited(), Err: err}
			if lease != nil {
				end.Token = lease.Token()
			}
			o.LockEnd(ctx, end)
		}()
	}
	if err := c.declare(ctx); err != nil {
		return nil, err
	}
	if a.run.Enter(ctx) {
		defer a.run.Leave()
		a.run.Run(ctx)
	}
	return a.outcome(ctx)
}

// declare declares the nodes new before the first lock, if Options.AssumeFresh
// asks for that.
func (c *Client) declare(ctx context.Context) error {
	states, err := c.cluster.Declare(ctx)
	err = cmp.Or(err, markError(states))
	switch {
	case ctx.Err() != nil:
		return endedError(ctx, err)
	case errors.Is(err, ErrConfig):
		return err
	case errors.Is(err, runner.ErrNotFresh):
		c.opts.Logger.Info("redlatch: nodes are not taken for new", "err", err)
	case err != nil:
		c.opts.Logger.Warn("redlatch: nodes could not be declared new", "err", err)
	}
	return nil
}

// endedError is what a caller gets whose context ended: the context's own
// error, its cause, and what had kept us until then, in words alone. It is not
// ErrHeld or ErrNoQuorum: who takes those for no failure must not take the end
// of its context for one of them.
func endedError(ctx context.Context, failure error) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); cause != err {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if failure != nil {
		err = fmt.Errorf("%w while waiting: %v", err, failure)
	}
	return err
}
