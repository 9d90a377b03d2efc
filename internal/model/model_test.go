package model

import (
	"context"
	"testing"
)

// TestDesignHoldsInEveryInterleaving searches the smaller instances to their
// end; make model does so with all of them.
func TestDesignHoldsInEveryInterleaving(t *testing.T) {
	var all Seen
	for _, a := range Arenas() {
		if !a.Small {
			continue
		}
		m := New(Rules{}, a.Bounds)
		r := m.Explore(context.Background(), Limits{})
		if r.Trace != nil {
			t.Errorf("%s: %v\n%s", a.Name, m.Verdict(r.Trace), m.Story(r.Trace))
		}
		if !r.Complete {
			t.Errorf("%s: not searched to its end", a.Name)
		}
		t.Logf("%s: %d states, %d steps, depth %d, %.1f s", a.Name, r.States, r.Transitions, r.Depth, r.Took.Seconds())
		all.add(&m.Seen)
	}
	for a, n := range all.Answers {
		// Where a stale token can do no harm any more, the model does not
		// even deliver it; and these instances have one list.
		if n == 0 && Answer(a) != Config && Answer(a) != Behind && Answer(a) != Refreshed && Answer(a) != Stale {
			t.Errorf("no node ever answered %q: the search shows less than it seems to", Answer(a))
		}
	}
	for what, n := range map[string]int{"lease": all.Leases, "extension": all.Extended, "repair": all.Repaired, "lapse": all.Lapsed, "restart": all.Restarts, "early expiry": all.EarlyExpiries} {
		if n == 0 {
			t.Errorf("there was no %s: the search shows less than it seems to", what)
		}
	}
}

// TestEverySiblingIsFoundBroken is what the other test is worth: the same
// search, with one rule left out.
func TestEverySiblingIsFoundBroken(t *testing.T) {
	for _, s := range Siblings() {
		t.Run(s.Name, func(t *testing.T) {
			m := New(s.Rules, s.Bounds)
			r := m.Explore(context.Background(), Limits{States: 1_000_000})
			if r.Trace == nil {
				t.Fatalf("not found broken in %d states, complete %v", r.States, r.Complete)
			}
			if v := m.Verdict(r.Trace); v != s.Want {
				t.Errorf("%v, want %v\n%s", v, s.Want, m.Story(r.Trace))
			}
			t.Logf("%v after %d steps, %d states\n%s", s.Want, len(r.Trace), r.States, m.Story(r.Trace))
			// The same steps do no harm to the design, as far as it lets
			// them happen at all.
			design := New(Rules{}, s.Bounds)
			if states, _ := design.Replay(r.Trace); states[len(states)-1].Bad != Fine {
				t.Errorf("the same steps break the design")
			}
		})
	}
}

// TestAddingOneNodeToAnOddListIsSafe is the one change that needs no hand-over.
func TestAddingOneNodeToAnOddListIsSafe(t *testing.T) {
	m := New(Rules{AnyList: true}, base(added))
	if r := m.Explore(context.Background(), Limits{}); r.Trace != nil || !r.Complete || m.Seen.Leases == 0 {
		t.Errorf("complete %v, %d leases\n%s", r.Complete, m.Seen.Leases, m.Story(r.Trace))
	}
}

// TestClocksSetBackLockNobodyOut has all fences out of every window, and time
// standing still: with the leap over the fence there is a way to a lease,
// without it there is none.
func TestClocksSetBackLockNobodyOut(t *testing.T) {
	m := New(Rules{}, base(setBack))
	if r := m.Reach(context.Background(), Limits{}); r.Trace == nil {
		t.Errorf("no way to a lease in %d states", r.States)
	} else {
		t.Logf("a lease after %d steps\n%s", len(r.Trace), m.Story(r.Trace))
	}
	m = New(Rules{NoLeap: true}, base(setBack))
	if r := m.Reach(context.Background(), Limits{}); r.Trace != nil || !r.Complete || m.Seen.Answers[Ahead] == 0 {
		t.Errorf("without the leap: complete %v, %d answers of ahead\n%s", r.Complete, m.Seen.Answers[Ahead], m.Story(r.Trace))
	}
}

func TestRandomWalksBeyondTheSearchFindNothing(t *testing.T) {
	m := New(Rules{}, Wide())
	trace, steps := m.Walk(context.Background(), 1, 150, 300)
	if trace != nil {
		t.Errorf("%v\n%s", m.Verdict(trace), m.Story(trace))
	}
	if m.Seen.Leases == 0 || m.Seen.Extended == 0 || m.Seen.Repaired == 0 {
		t.Errorf("the walks saw no more than %+v", m.Seen)
	}
	t.Logf("%d steps, %+v", steps, m.Seen)
}

// TestRandomWalksFindBrokenSiblings is what the other test is worth.
func TestRandomWalksFindBrokenSiblings(t *testing.T) {
	for name, r := range map[string]Rules{
		"a quorum of N/2":          {HalfQuorum: true},
		"believed at once":         {BelievedAtOnce: true},
		"no fence":                 {NoFence: true},
		"validity from the reply":  {ValidityFromReply: true},
		"value kept":               {SameValue: true},
		"release does not compare": {ReleaseUnchecked: true},
	} {
		m := New(r, Wide())
		trace, steps := m.Walk(context.Background(), 1, 2_000, 300)
		if trace == nil {
			t.Errorf("%s: not found broken in %d steps", name, steps)
			continue
		}
		t.Logf("%s: %v, found after %d steps of walking", name, m.Verdict(trace), steps)
	}
}
