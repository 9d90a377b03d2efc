package model

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/progress"
)

// System is what can be searched: where it begins, what can happen, and what
// must not be. S is a state, T a step.
type System[S, T any] struct {
	Init        S
	Next        func(s *S, emit func(T, *S))
	Fingerprint func(s *S) Print
	Wrong       func(s *S) bool
}

// Limits bound a search.
type Limits struct {
	States int // 0 for no limit
	Depth  int // 0 for no limit
}

// Result is what a search found.
type Result[T any] struct {
	States, Transitions, Depth int
	// Complete says that there is nothing more to be seen.
	Complete bool
	// Trace is the shortest way to a state that is wrong; nil if none was
	// found.
	Trace []T
	Took  time.Duration
}

// from is how a state was reached.
type from[T any] struct {
	parent int32
	step   T
}

// Explore takes every step from every state, breadth first, until nothing new
// is found, something wrong is, or a limit is reached. It tells ctx after every
// few thousand states, and ends early with it.
func Explore[S, T any](ctx context.Context, sys System[S, T], lim Limits) Result[T] {
	began := time.Now()
	var r Result[T]
	seen := map[Print]struct{}{sys.Fingerprint(&sys.Init): {}}
	ways := []from[T]{{parent: -1}}
	layer, first := []S{sys.Init}, 0 // first is the number of the layer's first state
	finish := func() Result[T] {
		r.States, r.Took = len(seen), time.Since(began)
		return r
	}
	if sys.Wrong(&sys.Init) {
		r.Trace = []T{}
		return finish()
	}
	for len(layer) > 0 {
		if lim.Depth != 0 && r.Depth == lim.Depth {
			return finish()
		}
		var next []S
		wrong := int32(-1)
		for i := range layer {
			if i%4096 == 4095 {
				progress.Tell(ctx)
				if ctx.Err() != nil {
					return finish()
				}
			}
			sys.Next(&layer[i], func(step T, s *S) {
				r.Transitions++
				if wrong >= 0 {
					return
				}
				p := sys.Fingerprint(s)
				if _, known := seen[p]; known {
					return
				}
				seen[p] = struct{}{}
				ways = append(ways, from[T]{int32(first + i), step})
				next = append(next, *s)
				if sys.Wrong(s) {
					wrong = int32(len(ways) - 1)
				}
			})
			if wrong >= 0 {
				r.Depth++
				for ; ways[wrong].parent >= 0; wrong = ways[wrong].parent {
					r.Trace = append([]T{ways[wrong].step}, r.Trace...)
				}
				return finish()
			}
			if lim.States != 0 && len(seen) >= lim.States {
				return finish()
			}
		}
		first += len(layer)
		layer = next
		if len(layer) > 0 {
			r.Depth++
		}
	}
	r.Complete = true
	return finish()
}
