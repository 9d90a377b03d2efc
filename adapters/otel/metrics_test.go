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
	"github.com/redlatch/redlatch/node/casnode"
	"github.com/redlatch/redlatch/observe"
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

func newClient(t *testing.T, o observe.Observer, nodes []redlatch.Node) *redlatch.Client {
	t.Helper()
	locks, err := redlatch.New(nodes, &redlatch.Options{Observer: o})
	must(t, err)
	t.Cleanup(func() { locks.Close() })
	return locks
}

func text(set attribute.Set) string {
	var all []string
	for _, a := range set.ToSlice() {
		all = append(all, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// values returns the value of every series; of a histogram the number and the
// sum of its observations.
func values(t *testing.T, reader *sdkmetric.ManualReader) map[string]float64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	must(t, reader.Collect(t.Context(), &data))
	all := map[string]float64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					all[m.Name+text(p.Attributes)+" count"], all[m.Name+text(p.Attributes)+" sum"] = float64(p.Count), p.Sum
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					all[m.Name+text(p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[int64]:
				for _, p := range d.DataPoints {
					all[m.Name+text(p.Attributes)] = float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range d.DataPoints {
					all[m.Name+text(p.Attributes)] = p.Value
				}
			default:
				t.Errorf("%s is a %T", m.Name, d)
			}
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
		locks := newClient(t, observer, nodes)
		stop := observer.Watch(locks)
		opts := redlatch.LockOptions{MaxHold: 100 * time.Second}
		first, err := locks.Lock(t.Context(), "orders/1", &opts)
		must(t, err)
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
	lease, err := newClient(t, observer, memory.Nodes(1)).Lock(t.Context(), "job", nil)
	must(t, err)
	must(t, lease.Release(t.Context()))
}

func TestWrongNumberOfLabelsIsRefused(t *testing.T) {
	var bad *redlatch.ConfigError
	if _, err := redlatchotel.New(&redlatchotel.Options{MaxLabels: -1}); !errors.As(err, &bad) || bad.Field != "MaxLabels" {
		t.Errorf("got %v", err)
	}
}

// TestTimersAreCounted has a caller be refused on a store without a clock.
func TestTimersAreCounted(t *testing.T) {
	observer, reader := newMetering(t, redlatchotel.Options{})
	shelf := clockless.New(nil)
	var locks [2]*redlatch.Client
	for i := range locks {
		client, err := redlatch.New([]redlatch.Node{casnode.New(clockless.Timed{Store: shelf.Open()}, nil)}, &redlatch.Options{AssumeFresh: true, NodeTimeout: 10 * time.Second})
		must(t, err)
		t.Cleanup(func() { client.Close() })
		locks[i] = client
	}
	defer observer.Watch(locks[1])()
	_, err := locks[0].Lock(t.Context(), "job", nil)
	must(t, err)
	name := "redlatch.node.timers{node=" + locks[1].Nodes()[0].Node + "}"
	if n, found := values(t, reader)[name]; !found || n != 0 {
		t.Errorf("%v timers before anybody was refused, shown: %v", n, found)
	}
	locks[1].TryLock(t.Context(), "job", nil)
	if n := values(t, reader)[name]; n != 1 {
		t.Errorf("%v timers after one refusal", n)
	}
}
