package redlatchprom

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/internal/metrics"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// Collector is an observer of redlatch clients that exports what it is notified
// of. Any number of clients may have the same.
type Collector struct {
	wait, hold, round            *prometheus.HistogramVec
	acquired, failed, lost       *prometheus.CounterVec
	withoutQuorum, nodeFailed    *prometheus.CounterVec
	waiting, held, used, longest *prometheus.Desc
	up, quarantined, clock       *prometheus.Desc
	timers                       *prometheus.Desc

	labels *metrics.Labels[series]
	nodes  metrics.Nodes
}

// series is what is counted for a label.
type series struct {
	wait, hold prometheus.Observer
	acquired   prometheus.Counter
}

type entry = metrics.Entry[series]

var (
	_ prometheus.Collector  = (*Collector)(nil)
	_ observe.RoundObserver = (*Collector)(nil)
	_ observe.LeaseObserver = (*Collector)(nil)
	_ observe.NodeObserver  = (*Collector)(nil)
)

// New returns a Collector. Register it, and set it as the Observer of clients.
func New(opts *Options) (*Collector, error) {
	o, err := optional.Value(opts).withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Collector{}
	if c.labels, err = metrics.NewLabels(o.Label, o.MaxLabels, c.series); err != nil {
		return nil, err
	}
	c.define(o)
	if err := prometheus.NewRegistry().Register(c); err != nil {
		return nil, &redlatch.ConfigError{Field: "ConstLabels", Value: o.ConstLabels, Bound: fmt.Sprintf("labels that Prometheus accepts: %v", err)}
	}
	for _, op := range []node.Op{node.OpAcquire, node.OpExtend, node.OpRelease} {
		c.withoutQuorum.WithLabelValues(op.String()) // from 0: the first one is an increase
	}
	return c, nil
}

// define creates the metrics.
func (c *Collector) define(opts Options) {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets, ConstLabels: opts.ConstLabels}, labels)
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: opts.ConstLabels}, labels)
	}
	gauge := func(name, help string, label string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{label}, opts.ConstLabels)
	}
	c.wait = histogram("redlatch_lock_wait_seconds", "How long requests for a lock took, whether they got it or not.", opts.WaitBuckets, "name")
	c.hold = histogram("redlatch_lock_hold_seconds", "How long leases were held that have ended.", opts.HoldBuckets, "name")
	c.acquired = counter("redlatch_lock_acquired_total", "Requests that got the lock.", "name")
	c.failed = counter("redlatch_lock_failed_total", "Requests that did not get the lock.", "name", "reason")
	c.lost = counter("redlatch_lock_lost_total", "Leases that ended without being released.", "name", "cause")
	c.waiting = gauge("redlatch_lock_waiting", "Requests that have not ended.", "name")
	c.held = gauge("redlatch_lock_held", "Leases that are held.", "name")
	c.longest = gauge("redlatch_lock_longest_wait_seconds", "How long the oldest request has waited that has not ended.", "name")
	c.used = gauge("redlatch_lock_hold_used_ratio", "The highest part of its MaxHold that a lease has been held for.", "name")
	c.withoutQuorum = counter("redlatch_rounds_without_quorum_total", "Rounds that failed because too few nodes answered or could grant.", "op")
	c.round = histogram("redlatch_node_round_seconds", "How long the node took to answer.", opts.RoundBuckets, "node", "op")
	c.nodeFailed = counter("redlatch_node_failed_total", "Requests that the node did not answer.", "node", "op")
	c.up = gauge("redlatch_node_up", "Whether the node answered the last request.", "node")
	c.quarantined = gauge("redlatch_node_quarantined", "Whether the node grants no locks because it may have forgotten some.", "node")
	c.clock = gauge("redlatch_node_clock_offset_seconds", "How far the node's clock is ahead of the client's.", "node")
	c.timers = prometheus.NewDesc("redlatch_node_timers_total", "Timers that were left on the node for callers that were refused.", []string{"node"}, opts.ConstLabels)
}

// series returns the series of a label. The losses begin at 0, so that the first
// one is an increase.
func (c *Collector) series(label string) series {
	for _, cause := range metrics.LostCauses {
		c.lost.WithLabelValues(label, cause)
	}
	return series{c.wait.WithLabelValues(label), c.hold.WithLabelValues(label), c.acquired.WithLabelValues(label)}
}

// Watch exports what the client knows about its nodes, from now on. stop ends
// that, for a client that is closed while the program goes on. If several
// clients have a node of the same name, the worst that one of them knows is
// exported.
func (c *Collector) Watch(client *redlatch.Client) (stop func()) { return c.nodes.Watch(client) }

// vectors returns the metrics that are updated when something happens.
func (c *Collector) vectors() []prometheus.Collector {
	return []prometheus.Collector{c.wait, c.hold, c.acquired, c.failed, c.lost, c.withoutQuorum, c.round, c.nodeFailed}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, v := range c.vectors() {
		v.Describe(ch)
	}
	for _, d := range []*prometheus.Desc{c.waiting, c.held, c.longest, c.used, c.up, c.quarantined, c.clock, c.timers} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, v := range c.vectors() {
		v.Collect(ch)
	}
	gauge := func(d *prometheus.Desc, value float64, label string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, label)
	}
	for _, e := range c.labels.All() {
		gauge(c.waiting, float64(e.Waiting.Len()), e.Label)
		gauge(c.held, float64(e.Held.Len()), e.Label)
		gauge(c.longest, e.Waiting.Longest().Seconds(), e.Label)
		gauge(c.used, e.Held.Used(), e.Label)
	}
	for _, h := range c.nodes.Health() {
		gauge(c.up, number(h.Up), h.Node)
		gauge(c.quarantined, number(h.Quarantined), h.Node)
		if h.ClockKnown {
			gauge(c.clock, h.Clock.Seconds(), h.Node)
		}
		ch <- prometheus.MustNewConstMetric(c.timers, prometheus.CounterValue, float64(h.Timers), h.Node)
	}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
