package explore

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Result is what a search found.
type Result struct {
	States, Steps, Depth int
	// Complete says that there is nothing more to be seen.
	Complete bool
	// Bad is what is wrong at the end of Trace, the shortest way to anything
	// wrong.
	Bad   Violation
	Trace []Step
	Story string
	Seen  Seen
	Took  time.Duration
}

// way is how a state was reached: by that step of its parent.
type way struct {
	parent int32
	number int32
}

// Search takes every step from every state, breadth first, until nothing new is
// found, something wrong is, or a bound is reached.
func Search(in Instance) Result {
	m := newMachine(in)
	return m.search(func(s *State) bool { return s.bad != Fine })
}

// Reach searches for a state in which somebody holds the lock.
func Reach(in Instance) Result {
	m := newMachine(in)
	return m.search(func(s *State) bool {
		for k := range s.claims {
			if s.valid(k) {
				return true
			}
		}
		return false
	})
}

func (m *machine) search(found func(*State) bool) Result {
	began := time.Now()
	first, story := m.begun()
	p := newPrinter()
	seen := map[Print]struct{}{m.print(p, first): {}}
	ways := []way{{parent: -1}}
	layer, number := []*State{first}, 0 // number is that of the layer's first state
	r := Result{}
	finish := func() Result {
		r.States, r.Took, r.Seen = len(seen), time.Since(began), m.seen
		return r
	}
	for len(layer) > 0 {
		if m.in.Depth != 0 && r.Depth == m.in.Depth {
			return finish()
		}
		var next []*State
		for i, s := range layer {
			layer[i] = nil
			wrong, step := int32(-1), int32(0)
			m.Next(s, func(_ Step, t *State) {
				r.Steps++
				step++
				if wrong >= 0 {
					return
				}
				pr := m.print(p, t)
				if _, known := seen[pr]; known {
					return
				}
				seen[pr] = struct{}{}
				ways = append(ways, way{int32(number + i), step - 1})
				next = append(next, t)
				if found(t) {
					wrong = int32(len(ways) - 1)
				}
			})
			if wrong >= 0 {
				r.Depth++
				m.tell(&r, ways, wrong, first, story)
				return finish()
			}
			if m.in.States != 0 && len(seen) >= m.in.States {
				return finish()
			}
		}
		number += len(layer)
		layer = next
		if len(layer) > 0 {
			r.Depth++
		}
	}
	r.Complete = true
	return finish()
}

// begun returns the state after the instance's start, and how it came about. It
// panics if a step of it is not possible.
func (m *machine) begun() (*State, *story) {
	s, st := m.init(), &story{m: m}
	for i, want := range m.in.Start {
		to, took := m.step(s, func(_ int32, step Step) bool { return step == want })
		if to == nil {
			panic(fmt.Sprintf("explore: %s: step %d of the start is not possible: %+v", m.in.Name, i+1, want))
		}
		st.add(took, s, to)
		s = to
	}
	m.seen.Answers = map[node.Status]int{}
	return s, st
}

// step takes the first step that is wanted, by its number or by itself.
func (m *machine) step(s *State, wanted func(number int32, step Step) bool) (to *State, took Step) {
	number := int32(0)
	m.Next(s, func(step Step, t *State) {
		if to == nil && wanted(number, step) {
			to, took = t, step
		}
		number++
	})
	return to, took
}

// tell takes the steps to a state once more, and writes down what happened.
func (m *machine) tell(r *Result, ways []way, to int32, s *State, st *story) {
	var numbers []int32
	for ; ways[to].parent >= 0; to = ways[to].parent {
		numbers = append([]int32{ways[to].number}, numbers...)
	}
	for _, n := range numbers {
		next, took := m.step(s, func(number int32, _ Step) bool { return number == n })
		st.add(took, s, next)
		s = next
	}
	r.Trace, r.Story, r.Bad = st.steps, st.text.String(), s.bad
}
