package model

import (
	"context"
	"testing"
)

// grid is a toy: two counters from 0 to 9, each step raises one of them. It has
// 100 states, 180 steps, and the farthest corner is 18 steps away.
func grid(wrong func(s [2]int) bool) System[[2]int, int] {
	seeds := NewSeeds()
	return System[[2]int, int]{
		Next: func(s *[2]int, emit func(int, *[2]int)) {
			for i := range s {
				if s[i] < 9 {
					t := *s
					t[i]++
					emit(i, &t)
				}
			}
		},
		Fingerprint: func(s *[2]int) Print { return PrintOf(seeds, *s) },
		Wrong:       func(s *[2]int) bool { return wrong(*s) },
	}
}

func TestSearchVisitsEveryStateOnce(t *testing.T) {
	r := Explore(context.Background(), grid(func([2]int) bool { return false }), Limits{})
	if r.States != 100 || r.Transitions != 180 || r.Depth != 18 || !r.Complete || r.Trace != nil {
		t.Errorf("states %d, steps %d, depth %d, complete %v, trace %v; want 100, 180, 18, true, none", r.States, r.Transitions, r.Depth, r.Complete, r.Trace)
	}
}

func TestSearchFindsAViolationAtTheLastDepth(t *testing.T) {
	r := Explore(context.Background(), grid(func(s [2]int) bool { return s == [2]int{9, 9} }), Limits{})
	if len(r.Trace) != 18 {
		t.Errorf("the farthest state was found by %d steps: want 18", len(r.Trace))
	}
	r = Explore(context.Background(), grid(func(s [2]int) bool { return s == [2]int{9, 9} }), Limits{Depth: 17})
	if r.Trace != nil || r.Complete {
		t.Errorf("a search that ends before it says it found %v, complete %v", r.Trace, r.Complete)
	}
}

func TestSearchFindsTheShortestWay(t *testing.T) {
	r := Explore(context.Background(), grid(func(s [2]int) bool { return s[0]+s[1] >= 5 && s[0] > 2 }), Limits{})
	if len(r.Trace) != 5 {
		t.Errorf("the nearest such state was found by %d steps: want 5", len(r.Trace))
	}
}

func TestSearchSaysSoWhenItIsCutShort(t *testing.T) {
	r := Explore(context.Background(), grid(func([2]int) bool { return false }), Limits{States: 50})
	if r.Complete || r.States < 50 {
		t.Errorf("complete %v after %d states of 50", r.Complete, r.States)
	}
}

// TestSymmetryLosesNothing holds that states which are taken for one lead to
// the same, by counting an instance with and without.
func TestSymmetryLosesNothing(t *testing.T) {
	m := New(Rules{}, base(func(*Bounds) {}))
	with := m.Explore(context.Background(), Limits{})
	sys := m.System()
	orbits := map[Print]bool{}
	plain := NewSeeds()
	sys.Fingerprint = func(s *State) Print {
		orbits[m.Fingerprint(s)] = true
		return PrintOf(plain, *s)
	}
	without := Explore(context.Background(), sys, Limits{})
	if !with.Complete || !without.Complete || len(orbits) != with.States {
		t.Errorf("%d states by symmetry, %d of them among the %d without", with.States, len(orbits), without.States)
	}
	if without.States < 6*with.States {
		t.Errorf("%d states without symmetry are too few for %d with: it merges nothing", without.States, with.States)
	}
	t.Logf("%d states, %d without symmetry", with.States, without.States)
}
