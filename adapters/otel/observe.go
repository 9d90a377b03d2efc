package redlatchotel

import (
	"context"
	"errors"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/internal/metrics"
	"github.com/redlatch/redlatch/observe"
)

// progress is a context that also says what is in progress: a request, or a
// lease. Its context has the span.
type progress struct {
	context.Context
	o     *Observer
	entry *entry
	item  metrics.Item
	span  trace.Span

	// Of a request.
	caller  trace.Span // of the caller's context
	waitFor waitFor    // what was last reported

	// Of a lease.
	lease      bool
	extensions atomic.Int64 // that were won
	failing    atomic.Bool  // the last one was not
}

// key finds the progress of an Observer in a context, where several may have
// theirs.
type key struct{ o *Observer }

// Value returns the progress itself for its Observer's key.
func (p *progress) Value(k any) any {
	if k, ok := k.(key); ok && k.o == p.o {
		return p
	}
	return p.Context.Value(k)
}

// from returns what the context has for this Observer; nil if it has nothing.
func (o *Observer) from(ctx context.Context) *progress {
	p, _ := ctx.Value(key{o}).(*progress)
	return p
}

// LockStart implements observe.Observer.
func (o *Observer) LockStart(ctx context.Context, start observe.LockStart) context.Context {
	p := &progress{o: o, entry: o.labels.Of(start.Name), caller: trace.SpanFromContext(ctx)}
	p.Context, p.span = o.startLock(ctx, p.entry, start)
	p.entry.Waiting.Add(&p.item, 0)
	return p
}

// LockEnd implements observe.Observer.
func (o *Observer) LockEnd(ctx context.Context, end observe.LockEnd) {
	p := o.from(ctx)
	if p == nil {
		return
	}
	p.entry.Waiting.Remove(&p.item)
	o.meters.wait.Record(ctx, end.Waited.Seconds(), p.entry.Data.record...)
	if end.Err == nil {
		o.meters.acquired.Add(ctx, 1, p.entry.Data.add...)
	} else {
		o.meters.failed.Add(ctx, 1, attributes(nameKey.String(p.entry.Label), reasonKey.String(observe.Outcome(end.Err))).add...)
	}
	p.endLock(end)
}

// Waiting implements observe.WaitObserver.
func (o *Observer) Waiting(ctx context.Context, w observe.Waiting) {
	if p := o.from(ctx); p != nil {
		p.waits(w)
	}
}

// RoundEnd implements observe.RoundObserver.
func (o *Observer) RoundEnd(ctx context.Context, end observe.RoundEnd) {
	short := metrics.NoQuorum(end)
	if short {
		o.meters.withoutQuorum.Add(ctx, 1, attributes(opKey.String(end.Op.String())).add...)
	}
	if p := o.from(ctx); p != nil {
		p.round(end, short)
	}
}

// LeaseStart implements observe.LeaseObserver.
func (o *Observer) LeaseStart(ctx context.Context, start observe.LeaseStart) context.Context {
	lease, request := &progress{o: o, lease: true}, o.from(ctx)
	if request != nil {
		lease.entry = request.entry
	} else { // it was attached
		lease.entry = o.labels.Of(start.Name)
	}
	lease.Context, lease.span = o.startHold(ctx, lease.entry, request, start)
	lease.entry.Held.Add(&lease.item, start.MaxHold)
	return lease
}

// LeaseEnd implements observe.LeaseObserver.
func (o *Observer) LeaseEnd(ctx context.Context, end observe.LeaseEnd) {
	p := o.from(ctx)
	if p == nil {
		return
	}
	p.entry.Held.Remove(&p.item)
	o.meters.hold.Record(ctx, end.Held.Seconds(), p.entry.Data.record...)
	if errors.Is(end.Cause, redlatch.ErrLost) {
		o.meters.lost.Add(ctx, 1, attributes(nameKey.String(p.entry.Label), causeKey.String(observe.Outcome(end.Cause))).add...)
	}
	p.endHold(end)
}

// NodeEnd implements observe.NodeObserver.
func (o *Observer) NodeEnd(end observe.NodeEnd) {
	m := o.requests(nodeOp{end.Node, end.Op})
	if end.Err != nil {
		o.meters.nodeFailed.Add(context.Background(), 1, m.add...) // not in the histogram: a refused connection is no quick answer
		return
	}
	o.meters.round.Record(context.Background(), end.Elapsed.Seconds(), m.record...)
}

// NodeChange implements observe.NodeObserver. It does nothing: Watch exports
// what is known about nodes.
func (o *Observer) NodeChange(observe.NodeHealth) {}

// requests returns the attributes for an operation of a node.
func (o *Observer) requests(of nodeOp) measured {
	o.mu.RLock()
	m, found := o.byNode[of]
	o.mu.RUnlock()
	if found {
		return m
	}
	m = attributes(nodeKey.String(metrics.NodeLabel(of.node)), opKey.String(of.op.String()))
	o.meters.nodeFailed.Add(context.Background(), 0, m.add...)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byNode[of] = m
	return m
}
