package contender_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/otel"
	"github.com/redlatch/redlatch/adapters/prom"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/store/memory"
)

var must = check.Must

// exported returns the page that a registry is scraped from, without what the exporter
// says of itself. Its lines are in order: of labels, help, types and values.
func exported(registry prometheus.Gatherer) []string {
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	lines := strings.Split(page.Body.String(), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "target_info") })
	slices.Sort(lines)
	return lines
}

// TestBothModulesExportTheSame has both observers see the same locks: names,
// kinds, labels, buckets and values are the same in Prometheus, so the dashboard
// and the alerts are for both.
func TestBothModulesExportTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prom, err := redlatchprom.New(nil)
		must(t, err)
		ours, theirs := prometheus.NewRegistry(), prometheus.NewRegistry()
		ours.MustRegister(prom)
		exporter, err := otelprom.New(otelprom.WithRegisterer(theirs), otelprom.WithoutScopeInfo())
		must(t, err)
		otel, err := redlatchotel.New(&redlatchotel.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))})
		must(t, err)
		use(t, observe.Join(prom, otel), func(c *redlatch.Client) { prom.Watch(c); otel.Watch(c) })
		a, b := exported(ours), exported(theirs)
		if !slices.Equal(a, b) {
			t.Errorf("redlatchprom exports\n%s\n\nand redlatchotel\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
		if n := strings.Count(strings.Join(a, "\n"), "# TYPE "); n != 16 {
			t.Errorf("only %d metrics: %q", n, a)
		}
	})
}

// use has every metric come up.
func use(t *testing.T, o observe.Observer, watch func(*redlatch.Client)) {
	t.Helper()
	nodes := memory.Nodes(3)
	locks := locktest.NewClient(t, nodes, redlatch.Options{Observer: o})
	watch(locks)
	released := locktest.MustLock(t, locks, "orders/1", redlatch.LockOptions{})
	time.AfterFunc(1300*time.Millisecond, func() { released.Release(t.Context()) })
	locktest.MustLock(t, locks, "orders/1", redlatch.LockOptions{}).Release(t.Context())
	locktest.MustLock(t, locks, "job", redlatch.LockOptions{NoKeepAlive: true, MaxHold: time.Minute})
	locks.TryLock(t.Context(), "job", nil)
	go locks.Lock(t.Context(), "job", nil) // is held after the loss
	time.Sleep(20 * time.Second)
	go locks.Lock(t.Context(), "job", nil) // waits
	for _, n := range nodes[:2] {
		n.(*memory.Node).SetDown(errors.New("down"))
	}
	time.Sleep(4 * time.Second)
	synctest.Wait()
}

// BenchmarkObservers is a pair with each of the observers, on one node in memory.
func BenchmarkObservers(b *testing.B) {
	prom := func() (observe.Observer, error) { return redlatchprom.New(nil) }
	otel := func(meters metric.MeterProvider, part float64) func() (observe.Observer, error) {
		tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(discard{}), sdktrace.WithSampler(sdktrace.TraceIDRatioBased(part)))
		return func() (observe.Observer, error) {
			return redlatchotel.New(&redlatchotel.Options{MeterProvider: meters, TracerProvider: tracers})
		}
	}
	exporter, err := otelprom.New(otelprom.WithRegisterer(prometheus.NewRegistry()))
	must(b, err)
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	for _, c := range []struct {
		name string
		open []func() (observe.Observer, error)
	}{
		{"none", nil},
		{"prom", []func() (observe.Observer, error){prom}},
		{"otel, metrics", []func() (observe.Observer, error){otel(meters, 0)}},
		{"otel, metrics, 1 % of traces", []func() (observe.Observer, error){otel(meters, 0.01)}},
		{"otel, metrics, all traces", []func() (observe.Observer, error){otel(meters, 1)}},
		{"prom, and otel for all traces", []func() (observe.Observer, error){prom, otel(noop.NewMeterProvider(), 1)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var all []observe.Observer
			var options redlatch.Options // without an observer, if there is none
			for _, open := range c.open {
				o, err := open()
				must(b, err)
				all = append(all, o)
				options.Observer = observe.Join(all...)
			}
			locks, err := redlatch.New(memory.Nodes(1), &options)
			must(b, err)
			defer locks.Close()
			b.ReportAllocs()
			for b.Loop() {
				lease, err := locks.Lock(b.Context(), "orders/42", nil)
				if err == nil {
					err = lease.Release(b.Context())
				}
				must(b, err)
			}
		})
	}
}

// discard is an exporter of spans that are not kept.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }
