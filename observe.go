package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// This file calls observers of leases and nodes, and joins observers. report.go
// calls those of rounds, lock.go those of requests.

// observation is what a LeaseObserver was notified of about a lease. It is under
// the claim's mutex.
type observation struct {
	ctx   context.Context // what LeaseStart returned; nil before it was called
	ended *LeaseEnd       // the end came before the start was reported
}

// observer returns the observer of leases; nil if there is none.
func (l *Lease) observer() LeaseObserver {
	o, _ := l.c.opts.Observer.(LeaseObserver)
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
	start := LeaseStart{
		Name: l.name, Token: core.Token(), TTL: core.TTL(), MaxHold: l.maxHold, Attached: attached,
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
func (l *Lease) observeEnd(end LeaseEnd) {
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

// nodeHooks returns what the runner calls for a NodeObserver; nil for any other.
func nodeHooks(o Observer) (func(*runner.Member, node.Op, node.Status, error, time.Duration), func(runner.Health)) {
	n, ok := o.(NodeObserver)
	if !ok {
		return nil, nil
	}
	end := func(m *runner.Member, op node.Op, status node.Status, err error, took time.Duration) {
		n.NodeEnd(NodeEnd{Node: m.Name(), Op: op, Status: status, Elapsed: took, Err: err})
	}
	return end, func(h runner.Health) { n.NodeChange(NodeHealth(h)) }
}

// Observers returns an observer that passes everything on to each of them, in
// their order. Each is notified of what it implements.
func Observers(each ...Observer) Observer { return observers(each) }

type observers []Observer

func (all observers) LockStart(ctx context.Context, start LockStart) context.Context {
	for _, o := range all {
		ctx = o.LockStart(ctx, start)
	}
	return ctx
}

func (all observers) LockEnd(ctx context.Context, end LockEnd) {
	for _, o := range all {
		o.LockEnd(ctx, end)
	}
}

func (all observers) Waiting(ctx context.Context, w Waiting) {
	for o := range implementing[WaitObserver](all) {
		o.Waiting(ctx, w)
	}
}

func (all observers) RoundEnd(ctx context.Context, end RoundEnd) {
	for o := range implementing[RoundObserver](all) {
		o.RoundEnd(ctx, end)
	}
}

func (all observers) LeaseStart(ctx context.Context, start LeaseStart) context.Context {
	for o := range implementing[LeaseObserver](all) {
		ctx = o.LeaseStart(ctx, start)
	}
	return ctx
}

func (all observers) LeaseEnd(ctx context.Context, end LeaseEnd) {
	for o := range implementing[LeaseObserver](all) {
		o.LeaseEnd(ctx, end)
	}
}

func (all observers) NodeEnd(end NodeEnd) {
	for o := range implementing[NodeObserver](all) {
		o.NodeEnd(end)
	}
}

func (all observers) NodeChange(health NodeHealth) {
	for o := range implementing[NodeObserver](all) {
		o.NodeChange(health)
	}
}

// implementing yields those that implement T.
func implementing[T Observer](all observers) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		for _, o := range all {
			if o, ok := o.(T); ok && !yield(o) {
				return
			}
		}
	}
}
