// Package observers has the observers for metrics and traces side by side: what
// each costs, and that both export the same.
package observers

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redlatchotel"
	"github.com/redlatch/redlatch/redlatchprom"
)

// Variant is a set of observers to measure.
type Variant struct {
	Name string
	// Open returns the observer, nil for none, and what is called for the client.
	Open func() (redlatch.Observer, func(*redlatch.Client), error)
}

// Variants are what is compared. The first has no observer.
var Variants = []Variant{
	{"none", func() (redlatch.Observer, func(*redlatch.Client), error) {
		return nil, func(*redlatch.Client) {}, nil
	}},
	{"redlatchprom", openProm},
	{"redlatchotel, metrics", func() (redlatch.Observer, func(*redlatch.Client), error) { return openOTel(true, 0) }},
	{"redlatchotel, metrics, 1 % of traces", func() (redlatch.Observer, func(*redlatch.Client), error) { return openOTel(true, 0.01) }},
	{"redlatchotel, metrics, all traces", func() (redlatch.Observer, func(*redlatch.Client), error) { return openOTel(true, 1) }},
	{"redlatchprom, and redlatchotel for all traces", openBoth},
}

func openProm() (redlatch.Observer, func(*redlatch.Client), error) {
	c, err := redlatchprom.New(redlatchprom.Options{})
	if err != nil {
		return nil, nil, err
	}
	return c, func(locks *redlatch.Client) { c.Watch(locks) }, prometheus.NewRegistry().Register(c)
}

// openOTel returns an observer with the SDK. The part of traces is sampled; 0
// means that there are none.
func openOTel(metrics bool, traces float64) (redlatch.Observer, func(*redlatch.Client), error) {
	opts := redlatchotel.Options{MeterProvider: metricnoop.NewMeterProvider(), TracerProvider: tracenoop.NewTracerProvider()}
	if metrics {
		exporter, err := otelprom.New(otelprom.WithRegisterer(prometheus.NewRegistry()))
		if err != nil {
			return nil, nil, err
		}
		opts.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	}
	if traces > 0 {
		opts.TracerProvider = sdktrace.NewTracerProvider(
			sdktrace.WithBatcher(discard{}), sdktrace.WithSampler(sdktrace.TraceIDRatioBased(traces)))
	}
	o, err := redlatchotel.New(opts)
	if err != nil {
		return nil, nil, err
	}
	return o, func(locks *redlatch.Client) { o.Watch(locks) }, nil
}

func openBoth() (redlatch.Observer, func(*redlatch.Client), error) {
	a, watchA, err := openProm()
	if err != nil {
		return nil, nil, err
	}
	b, watchB, err := openOTel(false, 1)
	if err != nil {
		return nil, nil, err
	}
	return redlatch.Observers(a, b), func(locks *redlatch.Client) { watchA(locks); watchB(locks) }, nil
}

// discard is an exporter of spans that are not kept.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }
