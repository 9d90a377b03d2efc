package ui

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/risk"
)

func TestViewsReadWhatTheyWrite(t *testing.T) {
	for _, v := range []view{
		{page: 1}, {page: 7}, {page: 1, q: "a b&c=d#e<\u202e"}, {page: 2, q: "x", sort: byWaiting}, {page: 1, sort: byAge}, {page: 1, lock: "a/b?c&d=%00 +é"},
	} {
		u, err := url.Parse(v.link())
		must(t, err)
		if got := viewOf(u.Query()); got != v || u.IsAbs() || strings.HasPrefix(u.Path, "/") {
			t.Errorf("%+v is read as %+v from %s", v, got, v.link())
		}
	}
	for query, want := range map[string]view{
		"page=0": {page: 1}, "page=-1": {page: 1}, "page=x": {page: 1}, "page=99999999999999999999": {page: 1}, "sort=evil": {page: 1}, "q=%20%20": {page: 1},
		"q=" + strings.Repeat("%C3%A9", 300): {page: 1, q: strings.Repeat("é", 256)},
	} {
		values, err := url.ParseQuery(query)
		must(t, err)
		if got := viewOf(values); got != want {
			t.Errorf("%s is read as %+v", query, got)
		}
	}
}

func TestPicksAndSorts(t *testing.T) {
	s := &snapshot{}
	now := time.Now()
	for i := range 205 {
		l := lock{name: fmt.Sprintf("job/%03d", i), waiting: i % 7, folded: strings.ToLower(fmt.Sprintf("job/%03d\nHost/%d", i, i))}
		if i%2 == 0 {
			l.holders = []holder{{Holder: redlatch.Holder{Since: now.Add(-time.Duration(i) * time.Second)}}}
		}
		s.locks = append(s.locks, l)
	}
	for _, c := range []struct {
		v                    view
		matches, page, shown int
		first                string
	}{
		{view{page: 1}, 205, 1, 100, "job/000"}, {view{page: 3}, 205, 3, 5, "job/200"}, {view{page: 9}, 205, 3, 5, "job/200"},
		{view{page: 1, q: "JOB/17"}, 10, 1, 10, "job/170"}, {view{page: 1, q: "host/204"}, 1, 1, 1, "job/204"}, {view{page: 4, q: "nothing"}, 0, 1, 0, ""},
		{view{page: 1, sort: byWaiting}, 205, 1, 100, "job/006"}, {view{page: 1, sort: byAge}, 205, 1, 100, "job/204"},
	} {
		p := s.pick(c.v)
		first := ""
		if len(p.locks) > 0 {
			first = p.locks[0].name
		}
		if p.matches != c.matches || p.page != c.page || len(p.locks) != c.shown || first != c.first {
			t.Errorf("%+v: %d matches, page %d, %d shown, the first %q", c.v, p.matches, p.page, len(p.locks), first)
		}
	}
}

// TestARowWithoutNewsDoesNotChange: what is left is reported with the time that
// answers take, and a deadline that wavers is the same.
func TestARowWithoutNewsDoesNotChange(t *testing.T) {
	at := time.Now()
	state := func(left time.Duration) *admin.LockState {
		return &admin.LockState{Name: "job", Held: true, Nodes: make([]admin.NodeListing, 1), Holders: []redlatch.Holder{{Owner: "a", Token: 7, Left: left, Nodes: 1, Holders: 1}}}
	}
	first := &snapshot{locks: []lock{{name: "a"}, newLock(state(10*time.Second), at)}}
	for left, same := range map[time.Duration]bool{9 * time.Second: true, 9100 * time.Millisecond: true, 8700 * time.Millisecond: true, 10 * time.Second: false, node.NoExpiry: false} {
		next := &snapshot{locks: []lock{newLock(state(left), at.Add(time.Second)), {name: "z"}}}
		next.settle(first)
		if got := next.locks[0].holders[0].until.Equal(first.locks[1].holders[0].until); got != same {
			t.Errorf("with %v left the deadline is the same: %v", left, got)
		}
	}
}

func TestHealths(t *testing.T) {
	at := time.Now()
	marked := &node.Guard{Replicas: 2}
	p := &admin.Pulse{Guarded: true, Window: 10 * time.Second, Quarantine: 32 * time.Second, Need: 3, Nodes: []admin.NodePulse{
		{Node: "fine", RoundTrip: time.Millisecond, State: admin.NodeState{Trusted: true}},
		{Node: "away", Err: fmt.Errorf("redlatch: no route (%w)", node.ErrUnsent)},
		{Node: "sits", State: admin.NodeState{Left: 20 * time.Second, Reason: node.ReasonChanged}, Clock: 2 * time.Second},
		{Node: "new", State: admin.NodeState{}, Clock: -6 * time.Second},
		{Node: "barred", State: admin.NodeState{Reason: node.ReasonBarred, Err: node.ErrConfig}},
		{Node: "other", State: admin.NodeState{Err: &node.ConfigError{Field: "nodes", Value: "x", Bound: "y"}}},
		{Node: "alone", State: admin.NodeState{Trusted: true, Marked: marked}},
		{Node: "mute", State: admin.NodeState{Err: fmt.Errorf("slow")}},
	}}
	got := healths(p, at)
	for i, want := range []health{inService, noAnswer, quarantined, unmarked, refused, refused, underserved, noAnswer} {
		if got[i].health != want {
			t.Errorf("%s is %s (%s), want %s", got[i].name, got[i].health, got[i].why, want)
		}
	}
	if got[1].why != "no route" || got[2].until.Sub(at) != 20*time.Second || serving(got) != 1 {
		t.Errorf("they are %+v, and %d are in service", got, serving(got))
	}
	fine, away, sits, fresh := got[0], got[1], got[2], got[3]
	for want, nodes := range map[string][]nodeHealth{ // three are needed
		"starts a wait of 32 s; nobody gets a lock before its end.": {fresh, away, fresh}, "starts a wait of 32 s.": {fine, fine, fine, fresh},
		"until 3 nodes are in service: <b>redlatch doctor --ready": {fine, sits, sits}, "until 3 nodes are in service: <b>redlatch doctor<": {fine, fine, away},
		"It grants no lock before then": {fine, fine, fine, sits}, "<p><b>redlatch doctor</b> says why": {fine, fine, fine, away},
	} {
		if says := (&snapshot{nodes: nodes, pulse: p}).advice(); strings.Count(string(says), want) != 1 {
			t.Errorf("want %q, got %s", want, says)
		}
	}
	if a, b, c := got[0].clockAlarm, got[2].clockAlarm, got[3].clockAlarm; a != risk.Fine || b != risk.Warning || c != risk.Danger {
		t.Errorf("the clocks are %v, %v, %v", a, b, c)
	}
	for d, want := range map[time.Duration]string{0: "0.0 ms", 20 * time.Microsecond: "0.0 ms", 2 * time.Second: "+2000 ms", -1500 * time.Microsecond: "−1.5 ms"} {
		if got := offset(d); got != want {
			t.Errorf("%v ahead is %q, want %q", d, got, want)
		}
	}
}

func TestNodesHaveShortNames(t *testing.T) {
	for _, want := range [][2]string{ // the names, and what is left of them
		{"redis://a:1 redis://b:1 redis://c:2", "a b c"}, {"redis://a:1 redis://a:2", ":1 :2"}, {"redis://a:1 redis://a:2 redis://b:1", "a:1 a:2 b:1"},
		{"redis://a:1 postgres://a:1", "redis://a:1 postgres://a:1"}, {"memory:1 redis://b:1", "memory:1 redis://b:1"}, {"redis://[::1]:1", "[::1]"},
	} {
		var nodes []nodeHealth
		for name := range strings.FieldsSeq(want[0]) {
			nodes = append(nodes, nodeHealth{name: name})
		}
		shorten(nodes)
		for i, short := range strings.Fields(want[1]) {
			if nodes[i].short != short {
				t.Errorf("of %s, %s is %s", want[0], short, nodes[i].short)
			}
		}
	}
}
