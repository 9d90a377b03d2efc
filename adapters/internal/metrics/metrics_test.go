package metrics_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/internal/metrics"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

func TestSetKnowsItsOldestAndWhichIsNearestToItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s metrics.Set
		var items [3]metrics.Item
		limits := []time.Duration{0, time.Minute, 10 * time.Second}
		for i := range items {
			s.Add(&items[i], limits[i])
			s.Add(&items[i], limits[i]) // once counts
			time.Sleep(time.Second)
		}
		want := func(n int, longest time.Duration, used float64) {
			t.Helper()
			if s.Len() != n || s.Longest() != longest || s.Used() != used {
				t.Errorf("%d, the longest %v, used %v; want %d, %v, %v", s.Len(), s.Longest(), s.Used(), n, longest, used)
			}
		}
		want(3, 3*time.Second, 0.1)
		s.Remove(&items[2])
		want(2, 3*time.Second, 2.0/60)
		s.Remove(&items[0])
		s.Remove(&items[0])
		want(1, 2*time.Second, 2.0/60)
		s.Remove(&items[1])
		want(0, 0, 0)
		s.Add(&items[1], 0)
		want(1, 0, 0)
	})
}

func TestNamesBeyondTheLimitShareALabel(t *testing.T) {
	made := map[string]int{}
	l, err := metrics.NewLabels(func(s string) string { return s }, 3, func(label string) string {
		made[label]++
		return label
	})
	check.Must(t, err)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			for _, name := range []string{fmt.Sprint(i % 10), "", "(other)", "a\xffb"} {
				l.Of(name).Waiting.Add(new(metrics.Item), 0)
			}
		})
	}
	all.Wait()
	labels, count := 0, 0
	for _, e := range l.All() {
		labels++
		count += e.Waiting.Len()
		if e.Data != e.Label || made[e.Label] != 1 || e.Label == "" || e.Label == "a\xffb" {
			t.Errorf("label %q with the data %q was made %d times", e.Label, e.Data, made[e.Label])
		}
	}
	if labels != 4 || count != 400 || len(made) != 4 || made["(other)"] != 1 {
		t.Errorf("%d labels for %d callers: %v", labels, count, made)
	}
}

func TestBadNumberOfLabelsIsRefused(t *testing.T) {
	for _, n := range []int{-1, 10_001} {
		_, err := metrics.NewLabels(nil, n, func(string) int { return 0 })
		if bad, ok := errors.AsType[*redlatch.ConfigError](err); !ok || bad.Field != "MaxLabels" {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// nodes is a client that knows what it is given.
type nodes []observe.NodeHealth

func (n nodes) Nodes() []observe.NodeHealth { return n }

func TestNodeOfTwoClientsIsAsTheWorseOneKnowsIt(t *testing.T) {
	var all metrics.Nodes
	all.Watch(nodes{{Node: "a", Up: true, Clock: time.Second, ClockKnown: true, Timers: 2}, {Node: "b", Up: true}})
	stop := all.Watch(nodes{{Node: "a", Quarantined: true, Clock: -time.Minute, ClockKnown: true, Timers: 3}, {Node: "c\xff", Up: true}})
	got := all.Health()
	want := []observe.NodeHealth{
		{Node: "a", Quarantined: true, Clock: -time.Minute, ClockKnown: true, Timers: 5}, {Node: "b", Up: true}, {Node: "c\uFFFD", Up: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
	stop()
	if got := all.Health(); len(got) != 2 || !got[0].Up {
		t.Errorf("after the end of the second: %+v", got)
	}
}

func TestRoundWithoutQuorum(t *testing.T) {
	said := func(s node.Status) observe.Result {
		return observe.Result{Reply: node.Reply{Status: s}}
	}
	failed := observe.Result{Err: redlatch.ErrNodeTimeout}
	pending := observe.Result{Err: runner.ErrPending}
	for name, c := range map[string]struct {
		nodes []observe.Result
		want  bool
	}{
		"held by another":            {[]observe.Result{said(node.Held), said(node.Held), failed}, false},
		"two of three do not answer": {[]observe.Result{said(node.Granted), failed, failed}, true},
		"one is in quarantine too":   {[]observe.Result{said(node.Granted), said(node.Quarantined), failed}, true},
		"another membership":         {[]observe.Result{said(node.Misconfigured)}, true},
		"the caller gave up":         {[]observe.Result{pending, pending, pending}, false},
	} {
		if got := metrics.NoQuorum(observe.RoundEnd{Nodes: c.nodes}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if metrics.NoQuorum(observe.RoundEnd{Nodes: c.nodes, Won: true}) {
			t.Errorf("%s: a round that was won", name)
		}
	}
}
