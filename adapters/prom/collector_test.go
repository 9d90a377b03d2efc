package redlatchprom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/prom"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/clockless"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/store/casnode"
	"github.com/redlatch/redlatch/store/memory"
)

var must = check.Must

// newCollector returns a Collector, and a registry that has it.
func newCollector(t *testing.T, opts redlatchprom.Options) (*redlatchprom.Collector, *prometheus.Registry) {
	t.Helper()
	c, err := redlatchprom.New(&opts)
	must(t, err)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	return c, registry
}

// values returns the value of every series, by the metric's name and its labels;
// of a histogram the number and the sum of its observations.
func values(t *testing.T, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	must(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%s", l.GetName(), l.GetValue()))
			}
			series := fmt.Sprintf("%s{%s}", f.GetName(), strings.Join(labels, ","))
			switch f.GetType() {
			case dto.MetricType_HISTOGRAM:
				all[series+" count"] = float64(m.Histogram.GetSampleCount())
				all[series+" sum"] = m.Histogram.GetSampleSum()
			case dto.MetricType_COUNTER:
				all[series] = m.Counter.GetValue()
			default:
				all[series] = m.Gauge.GetValue()
			}
		}
	}
	return all
}

// want compares some of the series; one that is NaN must not exist.
func want(t *testing.T, registry prometheus.Gatherer, series map[string]float64) {
	t.Helper()
	got := values(t, registry)
	for _, name := range slices.Sorted(maps.Keys(series)) {
		w := series[name]
		g, found := got["redlatch_"+name]
		switch {
		case math.IsNaN(w):
			if found {
				t.Errorf("%s is %v, and must not be there", name, g)
			}
		case !found:
			t.Errorf("there is no %s", name)
		case math.Abs(g-w) > 1e-9:
			t.Errorf("%s is %v, want %v", name, g, w)
		}
	}
}

// TestEveryEventIsCounted is the history of a lock, in virtual time: what
// happens, and the series that it changes.
func TestEveryEventIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, registry := newCollector(t, redlatchprom.Options{})
		nodes := memory.Nodes(3)
		locks := locktest.NewClient(t, nodes, redlatch.Options{Observer: c})
		lock := func(opts redlatch.LockOptions) *redlatch.Lease { return locktest.MustLock(t, locks, "orders/1", opts) }
		var first, second *redlatch.Lease
		var waits sync.WaitGroup
		gone := math.NaN()
		for _, step := range []struct {
			event string
			do    func()
			want  map[string]float64
		}{
			{"a lock is acquired", func() {
				first = lock(redlatch.LockOptions{MaxHold: 100 * time.Second})
				synctest.Wait() // or the next is granted the third node first, and releases it
			}, map[string]float64{
				"lock_acquired_total{name=orders/*}": 1, "lock_held{name=orders/*}": 1,
				"lock_wait_seconds{name=orders/*} count": 1, "lock_hold_seconds{name=orders/*} count": 0,
				"lock_lost_total{cause=not_extended,name=orders/*}": 0, "lock_lost_total{cause=taken,name=orders/*}": 0,
				"lock_failed_total{name=orders/*,reason=held}": gone, "rounds_without_quorum_total{op=acquire}": 0,
				"rounds_without_quorum_total{op=extend}": 0, "rounds_without_quorum_total{op=release}": 0,
				"node_failed_total{node=memory:1,op=acquire}": 0, "node_quarantined{node=memory:1}": gone, // nothing is watched
			}},
			{"a caller waits", func() {
				waits.Go(func() { second = lock(redlatch.LockOptions{MaxHold: 1000 * time.Second}) })
				time.Sleep(20 * time.Second)
				synctest.Wait()
			}, map[string]float64{
				"lock_waiting{name=orders/*}": 1, "lock_longest_wait_seconds{name=orders/*}": 20,
				"lock_held{name=orders/*}": 1, "lock_hold_used_ratio{name=orders/*}": 0.2,
			}},
			{"it is released, and the caller gets it", func() {
				first.Release(t.Context())
				waits.Wait()
				time.Sleep(10 * time.Second)
			}, map[string]float64{
				"lock_waiting{name=orders/*}": 0, "lock_longest_wait_seconds{name=orders/*}": 0,
				"lock_held{name=orders/*}": 1, "lock_hold_used_ratio{name=orders/*}": 0.01,
				"lock_wait_seconds{name=orders/*} count": 2, "lock_wait_seconds{name=orders/*} sum": 20,
				"lock_hold_seconds{name=orders/*} count": 1, "lock_hold_seconds{name=orders/*} sum": 20,
				"node_round_seconds{node=memory:3,op=release} count": 1,
			}},
			{"requests do not get it", func() {
				locks.TryLock(t.Context(), "orders/1", nil)
				locks.Lock(locktest.Within(t, time.Second), "orders/1", nil)
			}, map[string]float64{
				"lock_failed_total{name=orders/*,reason=held}": 1, "lock_failed_total{name=orders/*,reason=deadline}": 1,
				"lock_wait_seconds{name=orders/*} count": 4, "lock_acquired_total{name=orders/*}": 2,
			}},
			{"it is detached and attached", func() {
				handle, err := second.Detach()
				must(t, err)
				second, err = locks.Attach(t.Context(), handle)
				must(t, err)
			}, map[string]float64{
				"lock_held{name=orders/*}": 1, "lock_acquired_total{name=orders/*}": 2, "lock_hold_seconds{name=orders/*} count": 2,
			}},
			{"it is lost", func() {
				second.Release(t.Context())
				lock(redlatch.LockOptions{NoKeepAlive: true})
				time.Sleep(time.Minute)
				lock(redlatch.LockOptions{MaxHold: 15 * time.Second})
				time.Sleep(time.Minute)
			}, map[string]float64{
				"lock_lost_total{cause=not_extended,name=orders/*}": 1, "lock_lost_total{cause=max_hold,name=orders/*}": 1,
				"lock_lost_total{cause=taken,name=orders/*}": 0, "lock_lost_total{cause=released,name=orders/*}": gone,
				"lock_hold_seconds{name=orders/*} count": 5, "lock_held{name=orders/*}": 0, "lock_hold_used_ratio{name=orders/*}": 0,
				"lock_failed_total{name=orders/*,reason=max_hold}": gone, "rounds_without_quorum_total{op=acquire}": 0,
			}},
			{"nodes fail", func() {
				for _, n := range nodes[:2] {
					n.(*memory.Node).SetDown(errors.New("down"))
				}
				locks.TryLock(t.Context(), "orders/1", nil)
			}, map[string]float64{
				"lock_failed_total{name=orders/*,reason=no_quorum}": 1, "rounds_without_quorum_total{op=acquire}": 1,
				"node_failed_total{node=memory:1,op=acquire}": 1, "node_failed_total{node=memory:3,op=acquire}": 0,
			}},
		} {
			step.do()
			t.Log(step.event)
			want(t, registry, step.want)
		}
	})
}

// TestWatchedNodesAreExported has a client of nodes in memory, and one of a store
// without a clock, which leaves a timer there when it is refused.
func TestWatchedNodesAreExported(t *testing.T) {
	c, registry := newCollector(t, redlatchprom.Options{ConstLabels: prometheus.Labels{"cluster": "a"}})
	locks := locktest.NewClient(t, memory.Nodes(3), redlatch.Options{})
	locktest.MustLock(t, locks, "job", redlatch.LockOptions{})
	shelf := clockless.New(nil)
	var others [2]*redlatch.Client
	for i := range others {
		nodes := []redlatch.Node{casnode.New(clockless.Timed{Store: shelf.Open()}, nil)}
		others[i] = locktest.NewClient(t, nodes, redlatch.Options{AssumeFresh: true, NodeTimeout: 10 * time.Second})
	}
	locktest.MustLock(t, others[0], "job", redlatch.LockOptions{})
	stop := c.Watch(locks)
	c.Watch(others[1])
	timers := "node_timers_total{cluster=a,node=" + others[1].Nodes()[0].Node + "}"
	want(t, registry, map[string]float64{
		"node_up{cluster=a,node=memory:1}": 1, "node_up{cluster=a,node=memory:3}": 1, "node_quarantined{cluster=a,node=memory:2}": 0, timers: 0,
	})
	if _, known := values(t, registry)["redlatch_node_clock_offset_seconds{cluster=a,node=memory:2}"]; !known {
		t.Error("there is no offset of the clock")
	}
	others[1].TryLock(t.Context(), "job", nil)
	stop()
	want(t, registry, map[string]float64{"node_up{cluster=a,node=memory:1}": math.NaN(), timers: 1})
}

func TestTwoCollectorsOfOneClientDoNotMixTheirCounts(t *testing.T) {
	a, inA := newCollector(t, redlatchprom.Options{})
	b, inB := newCollector(t, redlatchprom.Options{Label: func(string) string { return "all" }})
	locks := locktest.NewClient(t, memory.Nodes(3), redlatch.Options{Observer: observe.Join(a, b)})
	lease := locktest.MustLock(t, locks, "job", redlatch.LockOptions{})
	locktest.MustLock(t, locks, "other", redlatch.LockOptions{}).Release(t.Context())
	want(t, inA, map[string]float64{"lock_held{name=job}": 1, "lock_held{name=other}": 0, "lock_held{name=all}": math.NaN()})
	want(t, inB, map[string]float64{"lock_held{name=all}": 1, "lock_acquired_total{name=all}": 2, "lock_held{name=job}": math.NaN()})
	lease.Release(t.Context())
	want(t, inA, map[string]float64{"lock_held{name=job}": 0})
	want(t, inB, map[string]float64{"lock_held{name=all}": 0})
}

// TestHostileNamesGiveMetricsThatParse has names that must not harm who reads
// the metrics. Names of locks have no control characters; labels that a program
// makes of them may.
func TestHostileNamesGiveMetricsThatParse(t *testing.T) {
	c, registry := newCollector(t, redlatchprom.Options{Label: func(name string) string {
		return name + "\n# TYPE evil counter\nevil 1\n\x00\xff" + name
	}})
	locks := locktest.NewClient(t, memory.Nodes(3), redlatch.Options{Observer: c})
	hostile := []string{`"},le="+Inf"} 1`, `a\nb\`, "\u202eevil\u200f/\u2066x", strings.Repeat("ü", 256), "a b\u2028c", `{}`}
	for _, name := range hostile {
		locktest.MustLock(t, locks, name, redlatch.LockOptions{}).Release(t.Context())
	}
	families, err := registry.Gather()
	must(t, err)
	var text bytes.Buffer
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&text, f)
		must(t, err)
	}
	promtool(t, text.Bytes(), "check", "metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	parsed, err := parser.TextToMetricFamilies(&text)
	must(t, err)
	if n := len(parsed["redlatch_lock_acquired_total"].GetMetric()); n != len(hostile) {
		t.Errorf("%d names have %d labels", len(hostile), n)
	}
	for name := range parsed {
		if !strings.HasPrefix(name, "redlatch_") {
			t.Errorf("there is a metric %q", name)
		}
	}
}

// promtool runs promtool, which Prometheus brings, on an input.
func promtool(t *testing.T, input []byte, args ...string) {
	t.Helper()
	cmd := exec.Command(need(t, "promtool"), args...)
	cmd.Stdin = bytes.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// need returns the path of a program of Prometheus. Without it the test fails:
// what cannot be tested was not tested.
func need(t *testing.T, program string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs Prometheus, and -short starts no servers")
	}
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("this test needs %s: install Prometheus with the system's package manager (apt-get install prometheus) or run make test, which does", program)
	}
	return path
}

func TestWrongOptionsAreRefusedByName(t *testing.T) {
	for field, opts := range map[string]redlatchprom.Options{
		"MaxLabels":    {MaxLabels: -1},
		"WaitBuckets":  {WaitBuckets: []float64{1, 1}},
		"HoldBuckets":  {HoldBuckets: []float64{}},
		"RoundBuckets": {RoundBuckets: []float64{math.NaN()}},
		"ConstLabels":  {ConstLabels: prometheus.Labels{"name": "a"}},
	} {
		_, err := redlatchprom.New(&opts)
		if bad, ok := errors.AsType[*redlatch.ConfigError](err); !ok || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, labels := range []prometheus.Labels{{"__a": ""}, {"op": ""}, {"": ""}, {"a": "\xff"}} {
		if _, err := redlatchprom.New(&redlatchprom.Options{ConstLabels: labels}); !errors.Is(err, redlatch.ErrConfig) {
			t.Errorf("%q: %v", labels, err)
		}
	}
}

// TestObserverIsCheap counts what a lock costs in allocations: the label, and a
// context for the request and one for the lease.
func TestObserverIsCheap(t *testing.T) {
	c, _ := newCollector(t, redlatchprom.Options{})
	ctx := context.Background()
	pair := func() {
		request := c.LockStart(ctx, observe.LockStart{Name: "job"})
		c.NodeEnd(observe.NodeEnd{Node: "memory:1", Op: 1})
		lease := c.LeaseStart(request, observe.LeaseStart{Name: "job"})
		c.LockEnd(request, observe.LockEnd{Name: "job"})
		c.LeaseEnd(lease, observe.LeaseEnd{Name: "job", Cause: redlatch.ErrReleased})
	}
	pair()
	if n := testing.AllocsPerRun(1000, pair); n > 3 {
		t.Errorf("a lock costs %v allocations", n)
	}
}
