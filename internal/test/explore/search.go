package explore

import (
	"fmt"
	"slices"
	"time"
)

// Result is what a search found.
type Result struct {
	States, Steps, Depth int
	// Complete says that there is nothing more to be seen.
	Complete bool
	// Bad is what is wrong at the end of Story, the shortest way to what was
	// searched for, one step a line.
	Bad   Violation
	Story string
	Seen  map[string]int
	Took  time.Duration
}

// space is what a search goes through.
type space[S any] struct {
	first S
	next  func(S, func(S)) // every state that can follow, in the same order each time
	print func(S) Print
	found func(S) bool
	// The bounds; 0 for none.
	depth, states int
}

// way is how a state was reached: by that step of its parent.
type way struct{ parent, number int32 }

// search takes every step from every state, breadth first, until nothing new is
// found, what is searched for is, or a bound is reached. It returns the shortest
// way from the first state to what was found.
func (sp space[S]) search() (r Result, found []S) {
	began := time.Now()
	defer func() { r.Took = time.Since(began) }()
	seen := map[Print]struct{}{sp.print(sp.first): {}}
	ways := []way{{parent: -1}}
	layer, number := []S{sp.first}, 0 // number is that of the layer's first state
	for len(layer) > 0 {
		if sp.depth != 0 && r.Depth == sp.depth {
			return r, nil
		}
		var further []S
		for i, s := range layer {
			clear(layer[i : i+1])
			step, hit := int32(0), false
			sp.next(s, func(t S) {
				r.Steps++
				step++
				if hit {
					return
				}
				p := sp.print(t)
				if _, known := seen[p]; known {
					return
				}
				seen[p] = struct{}{}
				ways = append(ways, way{int32(number + i), step - 1})
				further = append(further, t)
				hit = sp.found(t)
			})
			r.States = len(seen)
			if hit {
				r.Depth++
				return r, sp.retrace(ways)
			}
			if sp.states != 0 && r.States >= sp.states {
				return r, nil
			}
		}
		number += len(layer)
		layer = further
		if len(layer) > 0 {
			r.Depth++
		}
	}
	r.Complete = true
	return r, nil
}

// retrace takes the steps to the last state once more.
func (sp space[S]) retrace(ways []way) []S {
	var numbers []int32
	for to := len(ways) - 1; to > 0; to = int(ways[to].parent) {
		numbers = append(numbers, ways[to].number)
	}
	path := []S{sp.first}
	for _, n := range slices.Backward(numbers) {
		number := int32(0)
		var to S
		sp.next(path[len(path)-1], func(t S) {
			if number == n {
				to = t
			}
			number++
		})
		path = append(path, to)
	}
	return path
}

// Search searches an instance for what must not be.
func Search(in Instance) Result {
	return newMachine(in).search(func(s *State) bool { return s.bad != Fine })
}

// Reach searches for a state in which somebody holds the lock.
func Reach(in Instance) Result {
	return newMachine(in).search(func(s *State) bool {
		for k := range s.claims {
			if s.valid(k) {
				return true
			}
		}
		return false
	})
}

func (m *machine) search(found func(*State) bool) Result {
	path, p := m.begun(), newPrinter()
	r, way := space[*State]{
		first: path[len(path)-1], next: m.Next, print: func(s *State) Print { return m.print(p, s) },
		found: found, depth: m.in.Depth, states: m.in.States,
	}.search()
	if way != nil {
		path = append(path, way[1:]...)
		r.Story, r.Bad = m.story(path), path[len(path)-1].bad
	}
	r.Seen = m.seen
	return r
}

// begun returns the states of the instance's start. It panics if a step of it is
// not possible.
func (m *machine) begun() []*State {
	path := []*State{m.init()}
	for i, want := range m.in.Start {
		var to *State
		m.Next(path[i], func(t *State) {
			if to == nil && t.step == want {
				to = t
			}
		})
		if to == nil {
			panic(fmt.Sprintf("explore: %s: step %d of the start is not possible: %+v", m.in.Name, i+1, want))
		}
		path = append(path, to)
	}
	m.seen = map[string]int{}
	return path
}
