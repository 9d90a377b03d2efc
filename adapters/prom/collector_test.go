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
	"github.com/redlatch/redlatch/node/casnode"
	"github.com/redlatch/redlatch/observe"
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

// newClient returns a client of three nodes in memory.
func newClient(t *testing.T, c observe.Observer) *redlatch.Client {
	t.Helper()
	locks, err := redlatch.New(memory.Nodes(3), &redlatch.Options{Observer: c})
	must(t, err)
	t.Cleanup(func() { locks.Close() })
	return locks
}

func mustLock(t *testing.T, c *redlatch.Client, name string, opts redlatch.LockOptions) *redlatch.Lease {
	t.Helper()
	l, err := c.Lock(t.Context(), name, &opts)
	must(t, err)
	return l
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

func TestLockThatIsWaitedForHeldAndReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, registry := newCollector(t, redlatchprom.Options{})
		locks := newClient(t, c)
		first := mustLock(t, locks, "orders/1", redlatch.LockOptions{MaxHold: 100 * time.Second})
		synctest.Wait() // or the second is granted the third node first, and releases it
		var second *redlatch.Lease
		var waits sync.WaitGroup
		waits.Go(func() { second = mustLock(t, locks, "orders/1", redlatch.LockOptions{MaxHold: 1000 * time.Second}) })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		want(t, registry, map[string]float64{
			"lock_waiting{name=orders/*}":              1,
			"lock_held{name=orders/*}":                 1,
			"lock_longest_wait_seconds{name=orders/*}": 20,
			"lock_hold_used_ratio{name=orders/*}":      0.2,
			"lock_wait_seconds{name=orders/*} count":   1,
			"lock_hold_seconds{name=orders/*} count":   0,
			"lock_acquired_total{name=orders/*}":       1,
		})
		first.Release(t.Context())
		waits.Wait()
		time.Sleep(10 * time.Second)
		want(t, registry, map[string]float64{
			"lock_waiting{name=orders/*}":                        0,
			"lock_held{name=orders/*}":                           1,
			"lock_longest_wait_seconds{name=orders/*}":           0,
			"lock_hold_used_ratio{name=orders/*}":                0.01,
			"lock_wait_seconds{name=orders/*} count":             2,
			"lock_wait_seconds{name=orders/*} sum":               20,
			"lock_hold_seconds{name=orders/*} count":             1,
			"lock_hold_seconds{name=orders/*} sum":               20,
			"lock_acquired_total{name=orders/*}":                 2,
			"lock_lost_total{cause=not_extended,name=orders/*}":  0,
			"lock_failed_total{name=orders/*,reason=held}":       math.NaN(),
			"lock_failed_total{name=orders/*,reason=no_quorum}":  math.NaN(),
			"rounds_without_quorum_total{op=acquire}":            0,
			"rounds_without_quorum_total{op=extend}":             0,
			"node_failed_total{node=memory:1,op=acquire}":        0,
			"node_round_seconds{node=memory:3,op=release} count": 1,
		})
		second.Release(t.Context())
	})
}

func TestEveryEndOfARequestAndOfALeaseIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, registry := newCollector(t, redlatchprom.Options{})
		locks := newClient(t, c)
		lease := mustLock(t, locks, "job", redlatch.LockOptions{})
		locks.TryLock(t.Context(), "job", nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		locks.Lock(ctx, "job", nil)
		handle, err := lease.Detach()
		must(t, err)
		attached, err := locks.Attach(t.Context(), handle)
		must(t, err)
		want(t, registry, map[string]float64{"lock_held{name=job}": 1, "lock_acquired_total{name=job}": 1})
		attached.Release(t.Context())
		mustLock(t, locks, "job", redlatch.LockOptions{NoKeepAlive: true})
		time.Sleep(time.Minute)
		mustLock(t, locks, "job", redlatch.LockOptions{MaxHold: 15 * time.Second})
		time.Sleep(time.Minute)
		want(t, registry, map[string]float64{
			"lock_failed_total{name=job,reason=held}":         1,
			"lock_failed_total{name=job,reason=deadline}":     1,
			"lock_lost_total{cause=not_extended,name=job}":    1,
			"lock_lost_total{cause=max_hold,name=job}":        1,
			"lock_lost_total{cause=taken,name=job}":           0,
			"lock_acquired_total{name=job}":                   3,
			"lock_hold_seconds{name=job} count":               4, // the detached one too
			"lock_held{name=job}":                             0,
			"lock_hold_used_ratio{name=job}":                  0,
			"lock_wait_seconds{name=job} count":               5,
			"lock_failed_total{name=job,reason=max_hold}":     math.NaN(),
			"lock_lost_total{cause=released,name=job}":        math.NaN(),
			"node_quarantined{node=memory:1}":                 math.NaN(), // nothing is watched
			"rounds_without_quorum_total{op=acquire}":         0,
			"rounds_without_quorum_total{op=release}":         0,
			"node_failed_total{node=memory:1,op=acquire}":     0,
			"lock_longest_wait_seconds{name=job}":             0,
			"lock_waiting{name=job}":                          0,
			"node_round_seconds{node=memory:1,op=extend} sum": 0,
		})
	})
}

func TestWatchedNodesAreExported(t *testing.T) {
	c, registry := newCollector(t, redlatchprom.Options{ConstLabels: prometheus.Labels{"cluster": "a"}})
	locks := newClient(t, c)
	stop := c.Watch(locks)
	stopOther := c.Watch(newClient(t, c)) // other nodes of the same names: one series for both
	mustLock(t, locks, "job", redlatch.LockOptions{}).Release(t.Context())
	want(t, registry, map[string]float64{
		"node_up{cluster=a,node=memory:1}":          1,
		"node_up{cluster=a,node=memory:3}":          1,
		"node_quarantined{cluster=a,node=memory:2}": 0,
	})
	if _, known := values(t, registry)["redlatch_node_clock_offset_seconds{cluster=a,node=memory:2}"]; !known {
		t.Error("there is no offset of the clock")
	}
	stop()
	stopOther()
	want(t, registry, map[string]float64{"node_up{cluster=a,node=memory:1}": math.NaN()})
}

// TestTimersAreCounted has a caller be refused on a store without a clock.
func TestTimersAreCounted(t *testing.T) {
	c, registry := newCollector(t, redlatchprom.Options{})
	shelf := clockless.New(nil)
	var locks [2]*redlatch.Client
	for i := range locks {
		client, err := redlatch.New([]redlatch.Node{casnode.New(clockless.Timed{Store: shelf.Open()}, nil)}, &redlatch.Options{AssumeFresh: true, NodeTimeout: 10 * time.Second})
		must(t, err)
		t.Cleanup(func() { client.Close() })
		locks[i] = client
	}
	defer c.Watch(locks[1])()
	_, err := locks[0].Lock(t.Context(), "job", nil)
	must(t, err)
	name := "redlatch_node_timers_total{node=" + locks[1].Nodes()[0].Node + "}"
	if n, found := values(t, registry)[name]; !found || n != 0 {
		t.Errorf("%v timers before anybody was refused, shown: %v", n, found)
	}
	locks[1].TryLock(t.Context(), "job", nil)
	if n := values(t, registry)[name]; n != 1 {
		t.Errorf("%v timers after one refusal", n)
	}
}

func TestTwoCollectorsOfOneClientDoNotMixTheirCounts(t *testing.T) {
	a, inA := newCollector(t, redlatchprom.Options{})
	b, inB := newCollector(t, redlatchprom.Options{Label: func(string) string { return "all" }})
	locks := newClient(t, observe.Join(a, b))
	lease := mustLock(t, locks, "job", redlatch.LockOptions{})
	mustLock(t, locks, "other", redlatch.LockOptions{}).Release(t.Context())
	want(t, inA, map[string]float64{"lock_held{name=job}": 1, "lock_held{name=other}": 0, "lock_held{name=all}": math.NaN()})
	want(t, inB, map[string]float64{"lock_held{name=all}": 1, "lock_acquired_total{name=all}": 2, "lock_held{name=job}": math.NaN()})
	lease.Release(t.Context())
	want(t, inA, map[string]float64{"lock_held{name=job}": 0})
	want(t, inB, map[string]float64{"lock_held{name=all}": 0})
}

// hostile are names that must not harm who reads the metrics. Names of locks
// have no control characters; labels that a program makes of them may.
var hostile = []string{
	`<script>alert(1)</script>`, `"},le="+Inf"} 1`, `a\nb\`, "\u202eevil\u200f/\u2066x", strings.Repeat("x/", 256),
	strings.Repeat("ü", 256), "a b\u2028c", `{}`, `'; DROP TABLE locks; --`, `$(reboot)`, "\u200f",
}

func TestHostileNamesGiveMetricsThatParse(t *testing.T) {
	c, registry := newCollector(t, redlatchprom.Options{Label: func(name string) string {
		return name + "\n# TYPE evil counter\nevil 1\n\x00\xff" + name
	}})
	locks := newClient(t, c)
	c.Watch(locks)
	for _, name := range hostile {
		mustLock(t, locks, name, redlatch.LockOptions{}).Release(t.Context())
	}
	text := exposition(t, registry)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	must(t, err)
	if n := len(families["redlatch_lock_acquired_total"].GetMetric()); n != len(hostile) {
		t.Errorf("%d names have %d labels", len(hostile), n)
	}
	for name := range families {
		if !strings.HasPrefix(name, "redlatch_") {
			t.Errorf("there is a metric %q", name)
		}
	}
	promtool(t, text, "check", "metrics")
}

// exposition returns what a scrape returns.
func exposition(t *testing.T, registry prometheus.Gatherer) []byte {
	t.Helper()
	families, err := registry.Gather()
	must(t, err)
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	return text.Bytes()
}

// promtool runs promtool, which Prometheus brings, on an input.
func promtool(t *testing.T, input []byte, args ...string) string {
	t.Helper()
	cmd := exec.Command(need(t, "promtool"), args...)
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
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
		var bad *redlatch.ConfigError
		if !errors.As(err, &bad) || bad.Field != field {
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
