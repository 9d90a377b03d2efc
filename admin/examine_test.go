package admin_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/locktest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/risk"
	"github.com/redlatch/redlatch/store/memory"
)

func TestRecommendedTimesFollowTheMeasured(t *testing.T) {
	for _, c := range []struct {
		trip, limit, ttl time.Duration
		severity         risk.Severity
	}{
		{time.Microsecond, time.Second, 10 * time.Second, risk.Fine},
		{12 * time.Millisecond, time.Second, 10 * time.Second, risk.Fine},
		{25 * time.Millisecond, 2 * time.Second, 20 * time.Second, risk.Fine},
		{240 * time.Millisecond, 3 * time.Second, 200 * time.Second, risk.Warning},
	} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, 3)
			links[1].Set(func(l *locktest.Link) { l.Out = c.trip })
			up, err := admin.Examine(t.Context(), nodes, nil, &admin.ExamineOptions{Samples: 10})
			must(t, err)
			if up.NodeTimeout != c.limit || up.TTL != c.ttl || up.Nodes[1].P99 != c.trip || up.Nodes[1].Median != c.trip {
				t.Errorf("with trips of %v: limit %v, TTL %v, %+v", c.trip, up.NodeTimeout, up.TTL, up.Nodes[1])
			}
			for _, f := range up.Findings {
				if f.Check == "times" && f.Severity != c.severity {
					t.Errorf("with trips of %v: %+v", c.trip, f)
				}
			}
		})
	}
}

// TestSuggestedTTLIsNotThatOfAHiccup has one slow round trip in fifty, as a
// machine has that does something else for a moment, and then one in five.
func TestSuggestedTTLIsNotThatOfAHiccup(t *testing.T) {
	for every, want := range map[int]time.Duration{50: 10 * time.Second, 5: 300 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			links, nodes := locktest.NewLinks(t, 3)
			asked := 0
			links[1].Set(func(l *locktest.Link) {
				l.Out = time.Microsecond
				l.Hook = func(node.Request) {
					if asked++; asked%every == 0 {
						time.Sleep(500 * time.Millisecond)
					}
				}
			})
			up, err := admin.Examine(t.Context(), nodes, nil, nil)
			must(t, err)
			if up.TTL != want {
				t.Errorf("one slow round trip in %d: suggested TTL %v, want %v", every, up.TTL, want)
			}
		})
	}
}

// TestMeasuringHasALimit has a node that takes longer than there is time for all
// samples.
func TestMeasuringHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 1)
		links[0].Set(func(l *locktest.Link) { l.Out = 100 * time.Millisecond })
		start, trips := time.Now(), 0
		up, err := admin.Examine(t.Context(), nodes, nil, &admin.ExamineOptions{Samples: 1000, Progress: func() { trips++ }})
		if took := time.Since(start); err != nil || up.Answered != 1 || took > 10*time.Second || trips < 50 {
			t.Errorf("%d trips in %v: %+v, %v", trips, took, up, err)
		}
	})
}

func TestExaminationGoesOnWithoutNodesThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links, nodes := locktest.NewLinks(t, 3)
		links[0].Freeze()
		links[2].Set(func(l *locktest.Link) { l.Refuse = errors.New("unplugged") })
		up, err := admin.Examine(t.Context(), nodes, nil, &admin.ExamineOptions{Samples: 2})
		if err != nil || up.Answered != 1 || up.Need != 2 || up.Worst() != risk.Danger {
			t.Errorf("found is %+v, %v", up, err)
		}
		links[0].Thaw()
	})
	for _, how := range []admin.ExamineOptions{{Samples: -1}, {Samples: 1001}, {Name: strings.Repeat("n", 600)}} {
		_, err := admin.Examine(t.Context(), memory.Nodes(1), nil, &how)
		locktest.WantErr(t, err, redlatch.ErrConfig)
	}
}

func TestExaminationFindsAnotherMembershipWithTheGuardOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alone := elsewhere{w.all[0], "1"}
		find := func(opts redlatch.Options, nodes ...redlatch.Node) risk.Finding {
			up, err := admin.Examine(t.Context(), nodes, &opts, &admin.ExamineOptions{Samples: 2})
			must(t, err)
			for _, f := range up.Findings {
				if f.Check == "marker" {
					return f
				}
			}
			return risk.Finding{}
		}
		if f := find(redlatch.Options{}, alone); f.Check != "" {
			t.Errorf("without a marker found is %+v", f)
		}
		w.inService("1 2 3")
		if f := find(redlatch.Options{}, alone); f.Severity != risk.Danger || !strings.Contains(f.Found, "this client lacks 2 3") {
			t.Errorf("found is %+v", f)
		}
		if f := find(redlatch.Options{AnyMembership: true}, alone); f.Severity != risk.Advice || !strings.Contains(f.Found, "AnyMembership") {
			t.Errorf("with AnyMembership found is %+v", f)
		}
		if f := find(redlatch.Options{Guard: redlatch.GuardOff}, w.nodes("1 2 3")...); f.Check != "" {
			t.Errorf("of the same list found is %+v", f)
		}
	})
}
