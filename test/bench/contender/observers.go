package contender

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/otel"
	"github.com/redlatch/redlatch/adapters/prom"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/test/bench/server"
)

// variant is a set of observers to measure: redlatchprom, redlatchotel for
// metrics, and for a part of traces.
type variant struct {
	key, title    string
	prom, metrics bool
	traces        float64
}

// variants are what is compared.
var variants = []variant{
	{key: "observer-none", title: "none"},
	{key: "observer-prom", title: "redlatchprom", prom: true},
	{key: "observer-otel", title: "redlatchotel, metrics", metrics: true},
	{key: "observer-otel-1", title: "redlatchotel, metrics, 1 % of traces", metrics: true, traces: 0.01},
	{key: "observer-otel-100", title: "redlatchotel, metrics, all traces", metrics: true, traces: 1},
	{key: "observer-both", title: "redlatchprom, and redlatchotel for all traces", prom: true, traces: 1},
}

// watcher is an observer that wants to know the client.
type watcher interface {
	observe.Observer
	Watch(*redlatch.Client) (stop func())
}

// open returns the observers of a variant.
func (v variant) open() (all []watcher, err error) {
	if v.prom {
		c, err := redlatchprom.New(nil)
		if err == nil {
			err = prometheus.NewRegistry().Register(c)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if v.metrics || v.traces > 0 {
		o, err := v.otel()
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// otel returns an observer with the SDK.
func (v variant) otel() (*redlatchotel.Observer, error) {
	opts := redlatchotel.Options{MeterProvider: metricnoop.NewMeterProvider(), TracerProvider: tracenoop.NewTracerProvider()}
	if v.metrics {
		exporter, err := otelprom.New(otelprom.WithRegisterer(prometheus.NewRegistry()))
		if err != nil {
			return nil, err
		}
		opts.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	}
	if v.traces > 0 {
		opts.TracerProvider = sdktrace.NewTracerProvider(
			sdktrace.WithBatcher(discard{}), sdktrace.WithSampler(sdktrace.TraceIDRatioBased(v.traces)))
	}
	return redlatchotel.New(&opts)
}

// observed are redlatch with each of the observers, on servers or in memory.
func observed(kind server.Kind) []*Contender {
	var list []*Contender
	for _, v := range variants {
		c := &Contender{Key: v.key, Title: v.title, Server: kind, Guarded: true, Note: "zero options but the observer"}
		nodes := overSockets
		if kind == server.Memory {
			c.Key, c.Fixed, nodes = c.Key+"-memory", 1, inMemory
		}
		c.Open = func(_ context.Context, t Target) (*Locker, error) {
			all, err := v.open()
			if err != nil {
				return nil, err
			}
			var options redlatch.Options // without an observer, if there is none
			var observers []observe.Observer
			for _, o := range all {
				observers = append(observers, o)
				options.Observer = observe.Join(observers...)
			}
			client, err := newRedlatch(nodes, options, t)
			if err != nil {
				return nil, err
			}
			for _, o := range all {
				o.Watch(client)
			}
			return lockerOf(client), nil
		}
		list = append(list, c)
	}
	return list
}

// discard is an exporter of spans that are not kept.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }
