package sim

import (
	"slices"
	"testing"
)

// attempts is how often a plan is run to see whether it breaks a promise. Once
// is usually enough, but what several goroutines of one client do at exactly
// the same moment has no fixed order.
const attempts = 4

// breaks reports whether a plan leads to a broken promise.
func breaks(t *testing.T, p *Plan) bool {
	for range attempts {
		if Run(t, p, false).Violation != "" {
			return true
		}
	}
	return false
}

// Shrink removes from a plan that breaks a promise everything that is not
// needed for that: faults of messages if none is, other faults, and calls.
func Shrink(t *testing.T, p *Plan) *Plan {
	small := *p
	try := func(change func(p *Plan)) bool {
		next := small
		change(&next)
		if !breaks(t, &next) {
			return false
		}
		small = next
		return true
	}
	try(func(p *Plan) { p.Storm = 0 })
	for again := true; again; {
		again = without(len(small.Faults), func(from, to int) bool {
			return try(func(p *Plan) { p.Faults = slices.Delete(slices.Clone(p.Faults), from, to) })
		})
		again = without(len(small.Calls), func(from, to int) bool {
			return try(func(p *Plan) { p.Calls = slices.Delete(slices.Clone(p.Calls), from, to) })
		}) || again
	}
	return &small
}

// without removes parts of a sequence of n things, smaller and smaller ones,
// and reports whether it could remove any. drop gets the indexes among those
// that are left.
func without(n int, drop func(from, to int) bool) (dropped bool) {
	for size := n; size > 0; size /= 2 {
		for from := 0; from < n; {
			to := min(from+size, n)
			if drop(from, to) {
				n -= to - from
				dropped = true
			} else {
				from = to
			}
		}
	}
	return dropped
}
