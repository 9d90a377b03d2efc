package redlatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/holders"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
	"github.com/redlatch/redlatch/observe"
)

// TryLock asks for the lock in one round and does not wait. It returns a
// *HeldError if another client holds it, and a *QuorumError if too few nodes
// answered; its QuarantineLeft says when to ask again, if they are quarantined.
// The lease is not tied to ctx.
func (c *Client) TryLock(ctx context.Context, name string, opts *LockOptions) (*Lease, error) {
	once := optional.Value(opts)
	once.Wait = NoWait
	return c.lock(ctx, name, once)
}

// Lock waits until it has the lock, ctx ends, or a limit of opts is reached.
// The lease is not tied to ctx. If ctx ends, the error is the context's and its
// text says what Lock waited for; it is not ErrHeld or ErrNoQuorum.
//
// Lock waits for every condition that can end by itself: another client holds
// the lock, too few nodes answer, nodes are quarantined, or a membership change
// is in progress (ErrChanging). An outage that begins during the wait is
// treated like one that was there before. Any other *ConfigError cannot end by
// itself and is returned at once.
//
//   - With Wait or a deadline of ctx, Lock waits until then. With NoWait, it asks
//     once, as TryLock does.
//   - A quarantine ends by itself. While it is all that prevents a quorum, Lock
//     waits for its end, and that time does not count towards Wait.
//   - With none of these, it waits for a holder without limit. Each time it has
//     no quorum of servers, it waits OutagePatience for one, and for three rounds
//     at least: nodes that miss the time limit of one round may only be slow.
//
// At the end of the wait Lock returns what it waited for last: a *HeldError or
// a *QuorumError. If ctx ended, it returns the error of ctx with the same in
// its text.
//
// Locks are not re-entrant: a second Lock of the same name waits until the
// first is released, even in the same goroutine.
func (c *Client) Lock(ctx context.Context, name string, opts *LockOptions) (*Lease, error) {
	return c.lock(ctx, name, optional.Value(opts))
}

func (c *Client) lock(ctx context.Context, name string, opts LockOptions) (lease *Lease, err error) {
	if ctx.Err() != nil {
		return nil, lockerrors.Ended(ctx, nil)
	}
	key, err := c.key(name)
	if err != nil {
		return nil, err
	}
	a := &attempt{reporter: reporter{c, name, ctx}, asked: opts}
	want, err := a.wants(ctx, key)
	if err != nil {
		return nil, err
	}
	c.cluster.Begin(ctx, &a.Attempt, want, a)
	if opts.Wait == 0 {
		if own := heldOn(ctx, c, key); own != nil {
			return nil, deadlock(name, own, opts)
		}
	}
	// Close waits for this attempt, so every grant is undone.
	if !c.cluster.Start() {
		return nil, ErrClosed
	}
	defer c.cluster.Done()
	if o := c.opts.Observer; o != nil {
		ctx = o.LockStart(ctx, observe.LockStart{Name: name, TTL: a.opts.TTL, Nodes: len(c.cluster.Members())})
		a.ctx = ctx
		defer func() {
			end := observe.LockEnd{Name: name, Rounds: a.Rounds(), Waited: a.Waited(), Err: err}
			if lease != nil {
				end.Token = lease.Token()
			}
			o.LockEnd(ctx, end)
		}()
	}
	if err := c.declare(ctx); err != nil {
		return nil, err
	}
	a.Run(ctx)
	if lease, err = a.outcome(ctx); err == nil {
		lease.observeStart(ctx, false)
	}
	return lease, err
}

// declare declares the nodes new before the first lock, if Options.AssumeFresh
// is set.
func (c *Client) declare(ctx context.Context) error {
	states, err := c.cluster.Declare(ctx)
	if err == nil {
		err = stateError(states)
	}
	switch {
	case ctx.Err() != nil:
		return lockerrors.Ended(ctx, err)
	case errors.Is(err, ErrConfig):
		return err
	case errors.Is(err, runner.ErrNotFresh):
		c.opts.Logger.Info("redlatch: nodes are not taken for new", "err", err)
	case err != nil:
		c.opts.Logger.Warn("redlatch: nodes could not be declared new", "err", err)
	}
	return nil
}

// stateError returns why nodes could not be marked: an ErrConfig if there is one.
func stateError(states []runner.NodeState) error {
	var all []error
	for _, s := range states {
		if errors.Is(s.Err, ErrConfig) {
			return s.Err
		}
		if s.Err != nil {
			all = append(all, fmt.Errorf("%s: %w", s.Node, s.Err))
		}
	}
	return errors.Join(all...)
}

// attempt is one caller's request for one lock.
type attempt struct {
	reporter
	runner.Attempt
	asked LockOptions // as the caller gave them

	// handle is that of a lease which another process acquired.
	handle handle

	// Under the claim's mutex.
	opts    LockOptions
	failure error // why the last round gave no lease
	bad     error // why the nodes' parameters do not allow what was asked for
	lease   *Lease
}

// wants returns what the caller asked for, if the nodes allow it.
func (a *attempt) wants(ctx context.Context, key string) (runner.Want, error) {
	want, err := a.Learned(key, a.c.cluster.Parameters())
	if err != nil && a.c.cluster.Learn(ctx, err) {
		return a.Learned(key, a.c.cluster.Parameters())
	}
	return want, err
}

// Learned returns what the caller asked for, if the nodes allow it by the parameters p.
func (a *attempt) Learned(key string, p *node.Guard) (want runner.Want, err error) {
	asked := a.asked
	if a.handle.Key != "" {
		asked.Keep = min(asked.Keep, p.MaxTTL)
	}
	opts, err := asked.withDefaults(&a.c.opts, p.MaxTTL)
	if err != nil {
		a.bad = err
		return want, err
	}
	a.opts = opts
	return a.c.want(key, p, opts, a.handle.Slot), nil
}

// want returns what a caller with valid options wants.
func (c *Client) want(key string, p *node.Guard, opts LockOptions, slot int) runner.Want {
	share := opts.share()
	share.Slot = uint8(slot)
	return runner.Want{Key: key, Parameters: p, Wait: max(opts.Wait, 0), Config: protocol.Config{
		Share: share, Keep: opts.Keep, TTL: opts.TTL, MaxHold: opts.MaxHold, NoWait: opts.Wait == NoWait,
		KeepAlive: !opts.NoKeepAlive, RetryDelay: c.opts.RetryDelay,
	}}
}

// Notify handles news of the claim. The mutex is held.
func (a *attempt) Notify(cl *runner.Claim, what protocol.News) func() {
	switch what {
	case protocol.Waits:
		a.failure = a.failureOf(cl)
		o, observed := a.c.opts.Observer.(observe.WaitObserver)
		log := a.c.logsQuarantine(a.name, a.failure)
		if !observed {
			return log
		}
		ctx, w := a.ctx, observe.Waiting{Name: a.name, Place: cl.Core().Place(), Waited: a.Waited(), Err: a.failure}
		return func() {
			if log != nil {
				log()
			}
			o.Waiting(ctx, w)
		}
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
	lease, failure := a.lease, a.failure // nobody else uses them after Run
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
		return nil, lockerrors.Ended(ctx, failure)
	case closed:
		return nil, ErrClosed
	}
	return nil, failure
}

// logsQuarantine returns what logs that a wait for a quarantine begins, once for
// each quarantine; nil if there is nothing to log.
func (c *Client) logsQuarantine(name string, failure error) func() {
	e, ok := failure.(*QuorumError)
	if !ok || e.QuarantineLeft == 0 {
		return nil
	}
	now, told := c.cluster.Clock().Uptime(), c.told.Load()
	if now < time.Duration(told) || !c.told.CompareAndSwap(told, int64(now+e.QuarantineLeft+time.Second)) {
		return nil
	}
	return func() {
		args := []any{"name", name, "servers", e.Quarantined, "left", e.QuarantineLeft.Round(time.Second)}
		if e.hasNew(false) {
			args = append(args, "why", lockerrors.NewServers, "hint", lockerrors.AvoidWait+" or Options.AssumeFresh")
		}
		c.opts.Logger.Warn(waitsOut, args...)
	}
}

// failureOf returns why the last round gave no lease.
func (a *attempt) failureOf(cl *runner.Claim) error {
	switch cl.Core().Verdict() {
	case protocol.NoVerdict:
		return nil
	case protocol.BadTTL:
		return a.bad
	case protocol.BadSlots:
		theirs := cl.Core().OtherSlots()
		return &ConfigError{Field: "Slots", Value: a.opts.Slots, Bound: fmt.Sprintf("%d: %q is held with %d slots", theirs, a.name, theirs)}
	case protocol.NotOurs:
		return lostWithout(a.name, cl.Core().Token(), quorumError(cl))
	case protocol.HeldByAnother:
		return &HeldError{Name: a.name, Holders: holders.Of[Holder](cl.Results()...), Nodes: cl.Results()}
	case protocol.Changing, protocol.Mismatch:
		if err := a.c.cluster.Mismatch(cl.Results(), cl.Core().TTL()); err != nil {
			return err
		}
	case protocol.BadNode:
		for _, r := range cl.Results() {
			if _, ok := errors.AsType[*ConfigError](r.Err); ok {
				return r.Err
			}
		}
	}
	return quorumError(cl)
}

// newLease returns the lease of an attempt that was won. The mutex is held.
func newLease(a *attempt, cl *runner.Claim) *Lease {
	l := &Lease{c: a.c, name: a.name, claim: cl, token: cl.Core().Token(), handleKept: a.handle.Kept, handleHeld: a.handle.Held, maxHold: cmp.Or(time.Duration(a.handle.MaxHold), a.opts.MaxHold), kept: !a.opts.NoKeepAlive}
	if before, passed := cl.Owner().(*holding); passed { // with the same deadline
		l.at, before.early = before.at, cl.Core().Deadline()-cl.Core().Acquired()
		cl.Own((*holding)(l))
		return l
	}
	cl.Own((*holding)(l))
	l.moved()
	return l
}
