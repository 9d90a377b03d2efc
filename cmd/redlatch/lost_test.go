package main

import (
	"testing"
	"time"
)

func TestPlanEndsCommandBeforeTheDeadline(t *testing.T) {
	const grace = 2 * time.Second
	for _, c := range []struct {
		mode  onLost
		left  time.Duration
		taken bool
		want  step
	}{
		{onLostTerm, 10 * time.Second, false, stepNone},
		{onLostTerm, grace + 1, false, stepNone},
		{onLostTerm, grace, false, stepTerm},
		{onLostTerm, grace/4 + 1, false, stepTerm},
		{onLostTerm, grace / 4, false, stepKill},
		{onLostTerm, 0, false, stepKill},
		{onLostTerm, -time.Hour, false, stepKill}, // the machine slept
		{onLostTerm, 0, true, stepTerm},
		{onLostKill, grace, false, stepNone},
		{onLostKill, grace / 4, false, stepKill},
		{onLostKill, 0, true, stepKill},
		{onLostIgnore, grace / 4, false, stepNone},
		{onLostIgnore, 0, true, stepNone},
	} {
		if got := newPlan(grace, c.mode).due(c.left, c.taken); got != c.want {
			t.Errorf("%s with %v left (taken: %v): step %d, want %d", c.mode, c.left, c.taken, got, c.want)
		}
	}
}

// Whatever is due next, the hold must not sleep through it.
func TestPlanNextIsNeverAfterWhatIsDue(t *testing.T) {
	for _, mode := range []onLost{onLostTerm, onLostKill} {
		p := newPlan(time.Second, mode)
		for left := 5 * time.Second; left > 0; left -= time.Millisecond {
			next := p.next(left)
			if before := left - next + 1; next > 0 && before < left && p.due(before, false) != p.due(left, false) {
				t.Fatalf("%s: with %v left nothing is due for %v, but with %v left there is", mode, left, next, before)
			}
			if p.due(left-next, false) == stepNone {
				t.Fatalf("%s: with %v left, nothing is due after %v", mode, left, next)
			}
		}
	}
}

func TestGraceLeavesTimeForExtensions(t *testing.T) {
	for _, c := range []struct{ ttl, maxHold, want time.Duration }{
		{10 * time.Second, 24 * time.Hour, 2 * time.Second},
		{30 * time.Second, 24 * time.Hour, 2 * time.Second},
		{time.Second, 24 * time.Hour, 200 * time.Millisecond},
		{10 * time.Second, time.Second, 200 * time.Millisecond},
	} {
		f := &runFlags{ttl: c.ttl, maxHold: c.maxHold}
		if err := f.check(); err != nil || f.graceFor(c.ttl) != c.want {
			t.Errorf("grace for a TTL of %v and a hold of %v: %v, %v, want %v", c.ttl, c.maxHold, f.graceFor(c.ttl), err, c.want)
		}
	}
}
