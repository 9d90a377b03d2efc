package nodetest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/memory"
)

// kinds are the kinds of node that the suite distinguishes.
var kinds = []string{"", "keeps fences"}

func TestAHealthyNodeFailsNoClaim(t *testing.T) {
	for _, kind := range kinds {
		for claim, why := range judge(t, kind, mutant{}, nil) {
			t.Errorf("%s: %q failed: %s", kind, claim, why)
		}
	}
}

func TestEachBreakageIsToldByTheRightClaim(t *testing.T) {
	told := map[string]bool{}
	for _, r := range append(allRules(), placeRules...) {
		for claim := range strings.SplitSeq(r.claims, "; ") {
			told[claim] = true
		}
	}
	for _, m := range wrongStores() {
		t.Run(m.name, func(t *testing.T) {
			failed := judge(t, m.kind, m, m.claims)
			for _, claim := range m.claims {
				if failed[claim] == "" {
					t.Errorf("%q was not refuted", claim)
				}
				told[claim] = true
			}
		})
	}
	if t.Failed() {
		return
	}
	all := slices.Concat(placeClaims, placeWakeClaims)
	for _, kind := range kinds {
		all = append(all, claims(harness(kind, mutant{}))...)
	}
	for _, c := range all {
		if !told[c.name] {
			t.Errorf("no breakage is told by %q", c.name)
		}
	}
}

// judge checks the claims that are named on a node, or all if none are. It returns
// those that failed, and why.
func judge(t *testing.T, kind string, m mutant, only []string) map[string]string {
	h := harness(kind, m)
	failed := map[string]string{}
	for _, c := range claims(h) {
		if only != nil && !slices.Contains(only, c.name) {
			continue
		}
		a, b := h.Open(t)
		if why := refute(h, c, a, b, nil); why != "" {
			failed[c.name] = why
		}
	}
	return failed
}

// harness opens nodes in memory, broken as m says, with a clock of their own.
func harness(kind string, m mutant) Harness {
	now := time.Now()
	return Harness{
		Open: func(testing.TB) (a, b node.Node) {
			n := &broken{
				Node: memory.New(&memory.Options{Clock: func() time.Time { return now }}),
				do:   m.do,
				list: m.list,
			}
			if kind != "" && m.do == nil {
				n.do = rewrite(keepsFences)
			}
			return n, n
		},
		Wakes:       true,
		KeepsFences: kind == "keeps fences",
		Advance:     func(d time.Duration) { now = now.Add(d) },
	}
}

// refute returns why the claim failed, or "". late, if it is not nil, distinguishes a
// slow machine.
func refute(h Harness, c claim, a, b node.Node, late func(r *recorder) *lateness) string {
	r := &recorder{}
	done := make(chan struct{})
	// A goroutine of its own, because Fatalf ends the goroutine that calls it.
	go func() {
		defer close(done)
		p := newProbe(r, h, c, a, b)
		if late != nil {
			p.late = late(r)
		}
		c.check(p)
	}()
	<-done
	for _, f := range r.cleanups {
		f()
	}
	return r.why
}

// recorder is a reporter that records a failure.
type recorder struct {
	why      string
	cleanups []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.why += fmt.Sprintf(format, args...) + "; "
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
