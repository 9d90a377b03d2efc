package redlatchotel_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/otel"
	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/store/casnode"
	"github.com/redlatch/redlatch/store/memory"
)

// newMetering returns an observer without traces, and what reads its metrics.
func newMetering(t *testing.T, opts redlatchotel.Options) (*redlatchotel.Observer, *sdkmetric.ManualReader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	opts.TracerProvider, opts.MeterProvider = noop.NewTracerProvider(), sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	observer, err := redlatchotel.New(&opts)
	must(t, err)
	return observer, reader
}

func series(name string, set attribute.Set) string {
	var all []string
	for _, a := range set.ToSlice() {
		all = append(all, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
	}
	return name + "{" + strings.Join(all, ",") + "}"
}

// add adds the values of points.
func add[N int64 | float64](all map[string]float64, name string, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		all[series(name, p.Attributes)] = float64(p.Value)
	}
}

// values returns the value of every series; of a histogram the number and the
// sum of its observations.
func values(t *testing.T, reader *sdkmetric.ManualReader) map[string]float64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	must(t, reader.Collect(t.Context(), &data))
	all := map[string]float64{}
	for _, m := range data.ScopeMetrics[0].Metrics {
		switch d := m.Data.(type) {
		case metricdata.Histogram[float64]:
			for _, p := range d.DataPoints {
				name := series(m.Name, p.Attributes)
				all[name+" count"], all[name+" sum"] = float64(p.Count), p.Sum
			}
		case metricdata.Sum[int64]:
			add(all, m.Name, d.DataPoints)
		case metricdata.Gauge[int64]:
			add(all, m.Name, d.DataPoints)
		case metricdata.Gauge[float64]:
			add(all, m.Name, d.DataPoints)
		default:
			t.Errorf("%s is a %T", m.Name, d)
		}
	}
	return all
}

func want(t *testing.T, reader *sdkmetric.ManualReader, series map[string]float64) {
	t.Helper()
	got := values(t, reader)
	for name, w := range series {
		if g, found := got["redlatch."+name]; !found || math.Abs(g-w) > 1e-9 {
			t.Errorf("%s is %v, %v; want %v", name, g, found, w)
		}
	}
}

func TestMetricsOfWaitsHoldsLossesAndNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer, reader := newMetering(t, redlatchotel.Options{})
		nodes := memory.Nodes(3)
		locks := locktest.NewClient(t, nodes, redlatch.Options{Observer: observer})
		stop := observer.Watch(locks)
		opts := redlatch.LockOptions{MaxHold: 100 * time.Second}
		first := locktest.MustLock(t, locks, "orders/1", opts)
		var waits sync.WaitGroup
		waits.Go(func() { locks.Lock(t.Context(), "orders/1", &opts) })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		locks.TryLock(t.Context(), "orders/1", &opts)
		want(t, reader, map[string]float64{
			"lock.waiting{name=orders/*}":                 1,
			"lock.held{name=orders/*}":                    1,
			"lock.longest_wait{name=orders/*}":            20,
			"lock.hold_used{name=orders/*}":               0.2,
			"lock.failed{name=orders/*,reason=held}":      1,
			"lock.lost{cause=not_extended,name=orders/*}": 0,
			"rounds_without_quorum{op=acquire}":           0,
			"node.up{node=memory:1}":                      1,
			"node.quarantined{node=memory:1}":             0,
			"node.clock_offset{node=memory:1}":            0,
			"node.failed{node=memory:1,op=acquire}":       0,
			"node.round{node=memory:1,op=acquire} sum":    0,
		})
		first.Release(t.Context())
		waits.Wait()
		for _, n := range nodes[:2] {
			n.(*memory.Node).SetDown(errors.New("down"))
		}
		time.Sleep(time.Minute)
		want(t, reader, map[string]float64{
			"lock.waiting{name=orders/*}":                 0,
			"lock.held{name=orders/*}":                    0,
			"lock.wait{name=orders/*} count":              3,
			"lock.wait{name=orders/*} sum":                20,
			"lock.hold{name=orders/*} count":              2,
			"lock.acquired{name=orders/*}":                2,
			"lock.lost{cause=not_extended,name=orders/*}": 1,
			"node.up{node=memory:1}":                      0,
			"node.up{node=memory:3}":                      1,
		})
		got := values(t, reader)
		if got["redlatch.rounds_without_quorum{op=extend}"] == 0 || got["redlatch.node.failed{node=memory:2,op=extend}"] == 0 {
			t.Errorf("no failures in %v", got)
		}
		stop()
		if _, found := values(t, reader)["redlatch.node.up{node=memory:1}"]; found {
			t.Error("nodes that are not watched are exported")
		}
		must(t, observer.Close())
		if _, found := values(t, reader)["redlatch.lock.held{name=orders/*}"]; found {
			t.Error("a closed observer exports gauges")
		}
	})
}

func TestDefaultsAreTheGlobalProviders(t *testing.T) {
	observer, err := redlatchotel.New(nil)
	must(t, err)
	locks := locktest.NewClient(t, memory.Nodes(1), redlatch.Options{Observer: observer})
	must(t, locktest.MustLock(t, locks, "job", redlatch.LockOptions{}).Release(t.Context()))
}

func TestWrongNumberOfLabelsIsRefused(t *testing.T) {
	_, err := redlatchotel.New(&redlatchotel.Options{MaxLabels: -1})
	locktest.WantConfigError(t, err, "MaxLabels")
}

// TestTimersAreCounted has a caller be refused on a store without a clock.
func TestTimersAreCounted(t *testing.T) {
	observer, reader := newMetering(t, redlatchotel.Options{})
	shelf := clockless.New(nil)
	var locks [2]*redlatch.Client
	for i := range locks {
		nodes := []redlatch.Node{casnode.New(clockless.Timed{Store: shelf.Open()}, nil)}
		locks[i] = locktest.NewClient(t, nodes, redlatch.Options{AssumeFresh: true, NodeTimeout: 10 * time.Second})
	}
	defer observer.Watch(locks[1])()
	locktest.MustLock(t, locks[0], "job", redlatch.LockOptions{})
	timers := "node.timers{node=" + locks[1].Nodes()[0].Node + "}"
	want(t, reader, map[string]float64{timers: 0})
	locks[1].TryLock(t.Context(), "job", nil)
	want(t, reader, map[string]float64{timers: 1})
}
