package redlatchotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/redlatch/redlatch/adapters/internal/metrics"
	"github.com/redlatch/redlatch/node"
)

// The attributes of metrics. They are the labels of redlatchprom.
const (
	nameKey   = attribute.Key("name")
	reasonKey = attribute.Key("reason")
	causeKey  = attribute.Key("cause")
	nodeKey   = attribute.Key("node")
	opKey     = attribute.Key("op")
)

// instruments are the metrics. Units in braces are not part of a name in
// Prometheus; seconds and ratios are.
type instruments struct {
	wait, hold, round         metric.Float64Histogram
	acquired, failed, lost    metric.Int64Counter
	withoutQuorum, nodeFailed metric.Int64Counter

	waiting, held          metric.Int64ObservableUpDownCounter
	longest, used, clock   metric.Float64ObservableGauge
	nodeUp, nodeQuarantine metric.Int64ObservableGauge
	timers                 metric.Int64ObservableCounter
}

// maker makes instruments, and keeps the errors.
type maker struct {
	meter metric.Meter
	errs  []error
}

func (m *maker) histogram(name, help string, buckets []float64) metric.Float64Histogram {
	h, err := m.meter.Float64Histogram(name, metric.WithDescription(help), metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(buckets...))
	m.errs = append(m.errs, err)
	return h
}

func (m *maker) counter(name, unit, help string) metric.Int64Counter {
	c, err := m.meter.Int64Counter(name, metric.WithDescription(help), metric.WithUnit(unit))
	m.errs = append(m.errs, err)
	return c
}

func (m *maker) number(name, unit, help string) metric.Int64ObservableUpDownCounter {
	n, err := m.meter.Int64ObservableUpDownCounter(name, metric.WithDescription(help), metric.WithUnit(unit))
	m.errs = append(m.errs, err)
	return n
}

func (m *maker) total(name, unit, help string) metric.Int64ObservableCounter {
	c, err := m.meter.Int64ObservableCounter(name, metric.WithDescription(help), metric.WithUnit(unit))
	m.errs = append(m.errs, err)
	return c
}

func (m *maker) state(name, help string) metric.Int64ObservableGauge {
	g, err := m.meter.Int64ObservableGauge(name, metric.WithDescription(help))
	m.errs = append(m.errs, err)
	return g
}

func (m *maker) gauge(name, unit, help string) metric.Float64ObservableGauge {
	g, err := m.meter.Float64ObservableGauge(name, metric.WithDescription(help), metric.WithUnit(unit))
	m.errs = append(m.errs, err)
	return g
}

// measure makes the instruments.
func (o *Observer) measure(meter metric.Meter) (err error) {
	m := &maker{meter: meter}
	o.meters = instruments{
		wait:           m.histogram("redlatch.lock.wait", "How long requests for a lock took, whether they got it or not.", metrics.WaitBuckets),
		hold:           m.histogram("redlatch.lock.hold", "How long leases were held that have ended.", metrics.HoldBuckets),
		acquired:       m.counter("redlatch.lock.acquired", "{request}", "Requests that got the lock."),
		failed:         m.counter("redlatch.lock.failed", "{request}", "Requests that did not get the lock."),
		lost:           m.counter("redlatch.lock.lost", "{lease}", "Leases that ended without being released."),
		waiting:        m.number("redlatch.lock.waiting", "{request}", "Requests that have not ended."),
		held:           m.number("redlatch.lock.held", "{lease}", "Leases that are held."),
		longest:        m.gauge("redlatch.lock.longest_wait", "s", "How long the oldest request has waited that has not ended."),
		used:           m.gauge("redlatch.lock.hold_used", "1", "The highest part of its MaxHold that a lease has been held for."),
		withoutQuorum:  m.counter("redlatch.rounds_without_quorum", "{round}", "Rounds that failed because too few nodes answered or could grant."),
		round:          m.histogram("redlatch.node.round", "How long the node took to answer.", metrics.RoundBuckets),
		nodeFailed:     m.counter("redlatch.node.failed", "{request}", "Requests that the node did not answer."),
		nodeUp:         m.state("redlatch.node.up", "Whether the node answered the last request."),
		nodeQuarantine: m.state("redlatch.node.quarantined", "Whether the node grants no locks because it may have forgotten some."),
		clock:          m.gauge("redlatch.node.clock_offset", "s", "How far the node's clock is ahead of the client's."),
		timers:         m.total("redlatch.node.timers", "{timer}", "Timers that were left on the node for callers that were refused."),
	}
	if err := errors.Join(m.errs...); err != nil {
		return err
	}
	for _, op := range []node.Op{node.OpAcquire, node.OpExtend, node.OpRelease} {
		o.meters.withoutQuorum.Add(context.Background(), 0, attributes(opKey.String(op.String())).add...) // from 0: the first one is an increase
	}
	i := &o.meters
	o.callback, err = meter.RegisterCallback(o.observe, i.waiting, i.held, i.longest, i.used, i.nodeUp, i.nodeQuarantine, i.clock, i.timers)
	return err
}

// series returns what is needed for a label. The losses begin at 0, so that the
// first one is an increase.
func (o *Observer) series(label string) series {
	name := nameKey.String(label)
	for _, cause := range metrics.LostCauses {
		o.meters.lost.Add(context.Background(), 0, attributes(name, causeKey.String(cause)).add...)
	}
	return series{"lock " + label, "hold " + label, "release " + label, spanName.String(label), attributes(name)}
}

// observe reports what is in progress, and what is known about the nodes.
func (o *Observer) observe(_ context.Context, to metric.Observer) error {
	i := &o.meters
	for _, e := range o.labels.All() {
		with := e.Data.observe
		to.ObserveInt64(i.waiting, int64(e.Waiting.Len()), with...)
		to.ObserveInt64(i.held, int64(e.Held.Len()), with...)
		to.ObserveFloat64(i.longest, e.Waiting.Longest().Seconds(), with...)
		to.ObserveFloat64(i.used, e.Held.Used(), with...)
	}
	for _, h := range o.nodes.Health() {
		with := attributes(nodeKey.String(h.Node)).observe
		to.ObserveInt64(i.nodeUp, number(h.Up), with...)
		to.ObserveInt64(i.nodeQuarantine, number(h.Quarantined), with...)
		if h.ClockKnown {
			to.ObserveFloat64(i.clock, h.Clock.Seconds(), with...)
		}
		to.ObserveInt64(i.timers, h.Timers, with...)
	}
	return nil
}

func number(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
