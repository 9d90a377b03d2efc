package redlatchprom

import (
	"context"
	"errors"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/internal/metrics"
	"github.com/redlatch/redlatch/observe"
)

// progress is a context that also says what is in progress: a request, or a
// lease.
type progress struct {
	context.Context
	c     *Collector
	entry *entry
	item  metrics.Item
}

// key finds the progress of a Collector in a context, where several may have
// theirs.
type key struct{ c *Collector }

// Value returns the progress itself for its Collector's key.
func (p *progress) Value(k any) any {
	if k, ok := k.(key); ok && k.c == p.c {
		return p
	}
	return p.Context.Value(k)
}

// from returns what the context has for this Collector; nil if it has nothing.
func (c *Collector) from(ctx context.Context) *progress {
	p, _ := ctx.Value(key{c}).(*progress)
	return p
}

// LockStart implements observe.Observer.
func (c *Collector) LockStart(ctx context.Context, start observe.LockStart) context.Context {
	p := &progress{Context: ctx, c: c, entry: c.labels.Of(start.Name)}
	p.entry.Waiting.Add(&p.item, 0)
	return p
}

// LockEnd implements observe.Observer.
func (c *Collector) LockEnd(ctx context.Context, end observe.LockEnd) {
	p := c.from(ctx)
	if p == nil {
		return
	}
	p.entry.Waiting.Remove(&p.item)
	p.entry.Data.wait.Observe(end.Waited.Seconds())
	if end.Err == nil {
		p.entry.Data.acquired.Inc()
		return
	}
	c.failed.WithLabelValues(p.entry.Label, observe.Outcome(end.Err)).Inc()
}

// LeaseStart implements observe.LeaseObserver.
func (c *Collector) LeaseStart(ctx context.Context, start observe.LeaseStart) context.Context {
	lease := &progress{Context: ctx, c: c}
	if request := c.from(ctx); request != nil {
		lease.entry = request.entry
	} else { // it was attached
		lease.entry = c.labels.Of(start.Name)
	}
	lease.entry.Held.Add(&lease.item, start.MaxHold)
	return lease
}

// LeaseEnd implements observe.LeaseObserver.
func (c *Collector) LeaseEnd(ctx context.Context, end observe.LeaseEnd) {
	p := c.from(ctx)
	if p == nil {
		return
	}
	p.entry.Held.Remove(&p.item)
	p.entry.Data.hold.Observe(end.Held.Seconds())
	if errors.Is(end.Cause, redlatch.ErrLost) {
		c.lost.WithLabelValues(p.entry.Label, observe.Outcome(end.Cause)).Inc()
	}
}

// RoundEnd implements observe.RoundObserver.
func (c *Collector) RoundEnd(_ context.Context, end observe.RoundEnd) {
	if metrics.NoQuorum(end) {
		c.withoutQuorum.WithLabelValues(end.Op.String()).Inc()
	}
}

// NodeEnd implements observe.NodeObserver.
func (c *Collector) NodeEnd(end observe.NodeEnd) {
	name, op := metrics.NodeLabel(end.Node), end.Op.String()
	failed := c.nodeFailed.WithLabelValues(name, op) // from 0: the first one is an increase
	if end.Err != nil {
		failed.Inc() // not in the histogram: a refused connection is no quick answer
		return
	}
	c.round.WithLabelValues(name, op).Observe(end.Elapsed.Seconds())
}

// NodeChange implements observe.NodeObserver. It does nothing: Watch exports
// what is known about nodes.
func (c *Collector) NodeChange(observe.NodeHealth) {}
