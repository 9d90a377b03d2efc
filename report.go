package redlatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/internal/holders"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// reporter makes errors and observer calls of what a claim reports. Its methods
// are called with the claim's mutex held.
type reporter struct {
	c    *Client
	name string          // of the lock, as the caller gave it
	ctx  context.Context // for observers
}

// Name returns the name of the lock.
func (r *reporter) Name() string { return r.name }

// Notify notifies an observe.RoundObserver that a round is over.
func (r *reporter) Notify(cl *runner.Claim, what protocol.News) func() {
	o, ok := r.c.opts.Observer.(observe.RoundObserver)
	if !ok {
		return nil
	}
	ctx, end := r.ctx, observe.RoundEnd{Name: r.name, Won: true}
	switch what {
	case protocol.RoundOver:
		end = r.roundEnd(cl)
	case protocol.YieldOver:
		op, t := cl.Core().Yield()
		end.Op, end.Granted, end.Refused = op, t.Granted, t.Refused
	default:
		return nil
	}
	return func() { o.RoundEnd(ctx, end) }
}

// roundEnd describes the last round for an observer.
func (r *reporter) roundEnd(cl *runner.Claim) observe.RoundEnd {
	round, t := cl.Core().Round()
	end := observe.RoundEnd{
		Op: round.Op, Name: r.name, Won: t.Won() || round.Op == node.OpRelease && t.Freed(),
		Granted: t.Granted, Refused: t.Refused, Failed: t.Failed, Elapsed: round.Elapsed(),
		Nodes: cl.Results(),
	}
	if !end.Won {
		err := quorumError(cl)
		err.Name = r.name
		end.Err = err
	}
	return end
}

// quorumError describes the last round, which had no quorum.
func quorumError(cl *runner.Claim) *QuorumError {
	round, t := cl.Core().Round()
	e := &QuorumError{
		Op: round.Op, Name: cl.Key(), Need: protocol.Quorum(t.Nodes),
		Elapsed: round.Elapsed(), Late: round.Won, Nodes: cl.Results(),
	}
	e.countQuarantined()
	return e
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

// refusal returns why nodes took a lock away: too many have a marker of another
// membership, or what each of them answered.
func (r *reporter) refusal(cl *runner.Claim) error {
	if _, t := cl.Core().Round(); !t.Available() {
		if err := r.c.cluster.Mismatch(cl.Results(), cl.Core().TTL()); err != nil {
			return err
		}
	}
	return quorumError(cl)
}

// observation is what an observe.LeaseObserver was notified of about a lease. It
// is under the claim's mutex.
type observation struct {
	ctx   context.Context   // what LeaseStart returned; nil before it was called
	ended *observe.LeaseEnd // the end came before the start was reported
}

// observer returns the observer of leases; nil if there is none.
func (l *Lease) observer() observe.LeaseObserver {
	o, _ := l.c.opts.Observer.(observe.LeaseObserver)
	return o
}

// observeStart notifies the observer that a caller gets the lease. A lease that
// has ended meanwhile ends for the observer after that.
func (l *Lease) observeStart(ctx context.Context, attached bool) {
	o := l.observer()
	if o == nil {
		return
	}
	l.claim.Lock()
	core := l.claim.Core()
	share := core.Share()
	start := observe.LeaseStart{
		Name: l.name, Token: l.token, TTL: core.TTL(), MaxHold: l.maxHold, Attached: attached,
		Shared: share.Mode == node.Shared, Slots: int(share.Slots), Slot: int(share.Slot),
	}
	l.claim.Unlock()
	ctx = context.WithoutCancel(o.LeaseStart(ctx, start))
	l.claim.Lock()
	l.observed.ctx = ctx
	ended := l.observed.ended
	l.claim.Unlock()
	if ended != nil {
		o.LeaseEnd(ctx, *ended)
	}
}

// observeEnd notifies the observer that the lease has ended. A lease that no
// caller got has no start, and so no end.
func (l *Lease) observeEnd(end observe.LeaseEnd) {
	o := l.observer()
	if o == nil {
		return
	}
	l.claim.Lock()
	ctx := l.observed.ctx
	if ctx == nil {
		l.observed.ended = &end
	}
	l.claim.Unlock()
	if ctx != nil {
		o.LeaseEnd(ctx, end)
	}
}
