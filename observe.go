package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// This file calls observers of leases and nodes, and joins observers. report.go
// calls those of rounds, lock.go those of requests.

// observation is what a observe.LeaseObserver was notified of about a lease. It is under
// the claim's mutex.
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

// nodeHooks returns what the runner calls for a observe.NodeObserver; nil for any other.
func nodeHooks(o observe.Observer) (func(*runner.Member, node.Op, node.Status, error, time.Duration), func(observe.NodeHealth)) {
	n, ok := o.(observe.NodeObserver)
	if !ok {
		return nil, nil
	}
	end := func(m *runner.Member, op node.Op, status node.Status, err error, took time.Duration) {
		n.NodeEnd(observe.NodeEnd{Node: m.Name(), Op: op, Status: status, Elapsed: took, Err: err})
	}
	return end, n.NodeChange
}
