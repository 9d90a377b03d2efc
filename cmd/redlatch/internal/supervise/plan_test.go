package supervise

import (
	"testing"
	"time"
)

func TestPlanEndsCommandBeforeTheDeadline(t *testing.T) {
	const grace = 2 * time.Second
	for _, c := range []struct {
		mode  OnLost
		left  time.Duration
		taken bool
		want  step
	}{
		{Term, 10 * time.Second, false, stepNone},
		{Term, grace + 1, false, stepNone},
		{Term, grace, false, stepTerm},
		{Term, grace/4 + 1, false, stepTerm},
		{Term, grace / 4, false, stepKill},
		{Term, 0, false, stepKill},
		{Term, -time.Hour, false, stepKill}, // the machine slept
		{Term, 0, true, stepTerm},
		{Kill, grace, false, stepNone},
		{Kill, grace / 4, false, stepKill},
		{Kill, 0, true, stepKill},
		{Ignore, grace / 4, false, stepNone},
		{Ignore, 0, true, stepNone},
	} {
		if got := NewPlan(grace, c.mode).due(c.left, c.taken); got != c.want {
			t.Errorf("%s with %v left (taken: %v): step %d, want %d", c.mode, c.left, c.taken, got, c.want)
		}
	}
}

// Run must not sleep through the next step.
func TestPlanNextIsNeverAfterWhatIsDue(t *testing.T) {
	for _, mode := range []OnLost{Term, Kill} {
		p := NewPlan(time.Second, mode)
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
