package redlatch

import (
	"context"
	"errors"

	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// This file tells callers, the log and observers what becomes of a lease.

// lost returns the error for a lost lock. why is what the nodes answered,
// ErrMaxHold, or nil if the lock was not extended in time. The mutex is held.
func (l *Lease) lost(why error) *LostError {
	clock, core := l.c.cluster.Clock(), l.claim.Core()
	e := &LostError{Name: l.name, Token: l.token, Err: why}
	e.Held = clock.Uptime() - core.Acquired()
	e.Since = clock.Now().Add(-e.Held)
	if why == nil {
		e.Last = l.failed
	}
	e.Reason = e.reason(l.kept)
	return e
}

// tellEnd reports that the lease has ended. It runs without the mutex, because
// a logger or an observer may be slow.
func (l *Lease) tellEnd(end observe.LeaseEnd) {
	if errors.Is(end.Cause, ErrLost) {
		l.c.opts.Logger.Warn("redlatch: lock is lost", "name", l.name, "token", end.Token.String(), "held", end.Held, "cause", end.Cause)
	}
	l.observeEnd(end)
}

// said is what a node did about an extension, as far as the log distinguishes
// it.
type said uint8

const (
	nothingYet said = iota // the round ended before it answered
	noAnswer
	didExtend
	didRefuse
)

func saidBy(r observe.Result) said {
	switch {
	case r.Err == runner.ErrPending:
		return nothingYet
	case r.Err != nil:
		return noAnswer
	case r.Reply.Status == node.Granted:
		return didExtend
	}
	return didRefuse
}

// warn logs that a lease could not be extended: the first time, and when a node
// answers differently from the last time. It does not log each try, because
// there are many in one TTL.
func (l *Lease) warn(err *QuorumError) {
	l.claim.Lock()
	changed := l.said == nil
	if changed {
		l.said = make([]said, len(err.Nodes))
	}
	for i, r := range err.Nodes {
		if a := saidBy(r); a != nothingYet {
			changed = changed || l.said[i] != nothingYet && l.said[i] != a
			l.said[i] = a
		}
	}
	left := l.remaining()
	l.claim.Unlock()
	if changed && l.kept {
		l.c.opts.Logger.Warn("redlatch: lock could not be extended, trying again", "name", l.name, "left", left, "err", err)
	}
}

// relieve logs that a lease was extended after extensions had failed.
func (l *Lease) relieve() {
	l.claim.Lock()
	warned, left := l.said != nil, l.remaining()
	l.said = nil
	l.claim.Unlock()
	if warned && l.kept {
		l.c.opts.Logger.Info("redlatch: lock is extended again", "name", l.name, "left", left)
	}
}

// warnNotFreed logs why a release failed.
func (l *Lease) warnNotFreed(err error) {
	l.c.opts.Logger.Warn("redlatch: lock could not be released; it will expire after its TTL", "name", l.name, "err", err)
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
