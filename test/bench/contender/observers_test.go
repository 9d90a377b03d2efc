package contender

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/otel"
	"github.com/redlatch/redlatch/adapters/prom"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/store/memory"
	"github.com/redlatch/redlatch/test/bench/server"
)

// exported returns all that a registry exports, a line for each value.
func exported(t *testing.T, registry prometheus.Gatherer) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range families {
		if f.GetName() == "target_info" { // the exporter's own
			continue
		}
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			series := fmt.Sprintf("%s %s (%s)", f.GetName(), labels, f.GetHelp())
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				all = append(all, fmt.Sprintf("counter %s: %v", series, m.Counter.GetValue()))
			case dto.MetricType_GAUGE:
				all = append(all, fmt.Sprintf("gauge %s: %v", series, m.Gauge.GetValue()))
			case dto.MetricType_HISTOGRAM:
				buckets := map[float64]uint64{}
				for _, b := range m.Histogram.Bucket {
					buckets[b.GetUpperBound()] = b.GetCumulativeCount()
				}
				all = append(all, fmt.Sprintf("histogram %s: %d of %v in %v", series, m.Histogram.GetSampleCount(), m.Histogram.GetSampleSum(), buckets))
			default:
				t.Errorf("%s is a %v", f.GetName(), f.GetType())
			}
		}
	}
	slices.Sort(all)
	return all
}

// TestBothModulesExportTheSame has both observers see the same locks: names,
// kinds, labels, buckets and values are the same in Prometheus, so the dashboard
// and the alerts are for both.
func TestBothModulesExportTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prom, err := redlatchprom.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := prometheus.NewRegistry(), prometheus.NewRegistry()
		ours.MustRegister(prom)
		exporter, err := otelprom.New(otelprom.WithRegisterer(theirs), otelprom.WithoutScopeInfo())
		if err != nil {
			t.Fatal(err)
		}
		otel, err := redlatchotel.New(&redlatchotel.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))})
		if err != nil {
			t.Fatal(err)
		}
		use(t, observe.Join(prom, otel), func(c *redlatch.Client) { prom.Watch(c); otel.Watch(c) })
		a, b := exported(t, ours), exported(t, theirs)
		if !slices.Equal(a, b) {
			t.Errorf("redlatchprom exports\n%s\n\nand redlatchotel\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
		names := map[string]bool{}
		for _, line := range a {
			names[strings.Fields(line)[1]] = true
		}
		if len(names) != 15 {
			t.Errorf("only %d metrics: %q", len(names), slices.Sorted(maps.Keys(names)))
		}
	})
}

// use has every metric come up.
func use(t *testing.T, o observe.Observer, watch func(*redlatch.Client)) {
	t.Helper()
	nodes := memory.Nodes(3)
	locks, err := redlatch.New(nodes, &redlatch.Options{Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	watch(locks)
	lock := func(name string, opts redlatch.LockOptions) *redlatch.Lease {
		l, err := locks.Lock(t.Context(), name, &opts)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	released := lock("orders/1", redlatch.LockOptions{})
	time.AfterFunc(1300*time.Millisecond, func() { released.Release(t.Context()) })
	lock("orders/1", redlatch.LockOptions{}).Release(t.Context())
	lock("job", redlatch.LockOptions{NoKeepAlive: true, MaxHold: time.Minute})
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

func TestEveryVariantObserves(t *testing.T) {
	for i, c := range observed(server.Memory) {
		l, err := c.Open(t.Context(), Target{})
		if err != nil {
			t.Fatalf("%s: %v", c.Key, err)
		}
		release, err := l.Lock(t.Context(), Lock{Name: "orders/1"})
		if err == nil {
			err = release.Do()
		}
		if l.Close(); err != nil {
			t.Errorf("%s: %v", c.Key, err)
		}
		want := map[string]int{"observer-none-memory": 0, "observer-both-memory": 2}
		n, special := want[c.Key]
		if !special {
			n = 1
		}
		if all, err := variants[i].open(); err != nil || len(all) != n {
			t.Errorf("%s: %d observers, %v; want %d", c.Key, len(all), err, n)
		}
	}
}
