package redlatch

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/errs"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/observe"
)

// attempt is one caller's request for one lock.
type attempt struct {
	reporter
	run   *runner.Attempt
	asked LockOptions // as the caller gave them

	// handle is that of a lease which another process acquired.
	handle handle

	// Under the claim's mutex.
	opts    LockOptions
	failure error // why the last round gave no lease
	bad     error // why the nodes' parameters do not allow what was asked for
	lease   *Lease
}

// newAttempt returns the attempt of a caller that has just arrived.
func (c *Client) newAttempt(ctx context.Context, name string, opts LockOptions) (*attempt, error) {
	key, err := c.key(name)
	if err != nil {
		return nil, err
	}
	a := &attempt{reporter: reporter{c, name, ctx}, asked: opts}
	a.run, err = c.cluster.NewAttempt(ctx, key, a)
	return a, err
}

// Terms returns what the caller asked for, checked against maxTTL, the longest
// TTL that the nodes allow.
func (a *attempt) Terms(maxTTL time.Duration) (runner.Terms, error) {
	opts, err := a.asked.withDefaults(a.c.opts, maxTTL)
	if err != nil {
		a.bad = err
		return runner.Terms{}, err
	}
	a.opts = opts
	share := opts.share()
	share.Slot = uint8(a.handle.Slot)
	return runner.Terms{
		Share: share, Keep: opts.Keep, TTL: opts.TTL, MaxHold: opts.MaxHold, Wait: opts.Wait, Tries: opts.Tries, QuarantineWait: opts.QuarantineWait,
		KeepAlive: !opts.NoKeepAlive,
	}, nil
}

// Notify handles an effect of the claim. The mutex is held.
func (a *attempt) Notify(cl *runner.Claim, what protocol.EffectKind) func() {
	switch what {
	case protocol.Waits:
		a.failure = a.failureOf(cl)
		if o, ok := a.c.opts.Observer.(observe.WaitObserver); ok {
			ctx, w := a.ctx, observe.Waiting{Name: a.name, Place: cl.Core().Place(), Waited: a.run.Waited(), Err: a.failure}
			return func() { o.Waiting(ctx, w) }
		}
		return nil
	case protocol.Won:
		a.lease = newLease(a, cl)
		return nil
	case protocol.Refused:
		// A caller that leaves in the middle of a round learns what the round
		// before it found.
		if round, _ := cl.Core().Round(); round.Over {
			a.failure = a.failureOf(cl)
		}
		return nil
	}
	return a.reporter.Notify(cl, what)
}

// outcome returns the result of the attempt.
func (a *attempt) outcome(ctx context.Context) (*Lease, error) {
	closed := a.c.cluster.Closing()
	a.run.Lock()
	lease, failure := a.lease, a.failure
	a.run.Unlock()
	switch {
	case lease != nil && (ctx.Err() != nil || closed):
		// The caller has given up, or the client closes: nobody would release
		// it.
		a.c.cluster.Go(func() { lease.Release(context.WithoutCancel(ctx)) })
	case lease != nil:
		return lease, nil
	}
	switch {
	case errors.Is(failure, ErrLost):
		return nil, failure // the loss matters more than the end of the context
	case ctx.Err() != nil:
		return nil, errs.Ended(ctx, failure)
	case closed:
		return nil, ErrClosed
	}
	return nil, failure
}
