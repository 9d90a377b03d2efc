package redlatchotel

import (
	"cmp"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/internal/metrics"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// scope is the name of the instrumentation.
const scope = "github.com/redlatch/redlatch/adapters/otel"

// Options are the settings of an Observer. The zero value works.
type Options struct {
	// TracerProvider makes the tracer. Package trace/noop has one for no traces.
	// Defaults to the global one.
	TracerProvider trace.TracerProvider

	// MeterProvider makes the meter. Package metric/noop has one for no metrics.
	// Defaults to the global one.
	MeterProvider metric.MeterProvider

	// Label returns the label of a lock's name. Names with a key in them need
	// one label for all keys. Names whose label is "" have the label "(other)".
	// It runs for every request, and must be quick. Defaults to
	// observe.NamePattern.
	Label func(name string) string

	// MaxLabels is how many labels there may be. Names beyond have the label
	// "(other)". Defaults to 100.
	MaxLabels int

	// FullNames puts the full name of the lock and the text of errors, which
	// contains it, into spans. Defaults to false: a name may contain what does
	// not belong there, such as that of a customer.
	FullNames bool
}

// Observer is an observer of redlatch clients that makes metrics and traces of
// what it is notified of. Any number of clients may have the same.
type Observer struct {
	tracer    trace.Tracer
	fullNames bool
	meters    instruments
	callback  metric.Registration

	labels *metrics.Labels[series]
	nodes  metrics.Nodes

	mu     sync.RWMutex
	byNode map[nodeOp]measured
}

// series is what is needed for a label: names of spans, and options that would
// otherwise be made anew for every request.
type series struct {
	lock, hold, release string // names of spans
	name                attribute.KeyValue
	measured
}

// measured is a set of attributes, as each kind of instrument wants it.
type measured struct {
	record  []metric.RecordOption
	add     []metric.AddOption
	observe []metric.ObserveOption
}

type nodeOp struct {
	node string
	op   node.Op
}

type entry = metrics.Entry[series]

var (
	_ observe.WaitObserver  = (*Observer)(nil)
	_ observe.RoundObserver = (*Observer)(nil)
	_ observe.LeaseObserver = (*Observer)(nil)
	_ observe.NodeObserver  = (*Observer)(nil)
)

// New returns an Observer. Set it as the Observer of clients.
func New(opts *Options) (*Observer, error) {
	set := optional.Value(opts)
	set.TracerProvider = cmp.Or(set.TracerProvider, otel.GetTracerProvider())
	set.MeterProvider = cmp.Or(set.MeterProvider, otel.GetMeterProvider())
	o := &Observer{tracer: set.TracerProvider.Tracer(scope), fullNames: set.FullNames, byNode: map[nodeOp]measured{}}
	var err error
	if o.labels, err = metrics.NewLabels(set.Label, set.MaxLabels, o.series); err != nil {
		return nil, err
	}
	if err := o.measure(set.MeterProvider.Meter(scope)); err != nil {
		return nil, err
	}
	return o, nil
}

// Watch exports what the client knows about its nodes, from now on. stop ends
// that, for a client that is closed while the program goes on. If several
// clients have a node of the same name, the worst that one of them knows is
// exported.
func (o *Observer) Watch(client *redlatch.Client) (stop func()) { return o.nodes.Watch(client) }

// Close ends the export of what is in progress and of nodes, for an Observer
// that is replaced by another.
func (o *Observer) Close() error { return o.callback.Unregister() }

// attributes returns a set of attributes for every kind of instrument.
func attributes(all ...attribute.KeyValue) measured {
	set := metric.WithAttributeSet(attribute.NewSet(all...))
	return measured{[]metric.RecordOption{set}, []metric.AddOption{set}, []metric.ObserveOption{set}}
}
