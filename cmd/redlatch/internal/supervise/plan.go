package supervise

import "time"

// OnLost says what becomes of CMD when its lease is being lost.
type OnLost string

const (
	Term   OnLost = "term"   // TERM, then KILL
	Kill   OnLost = "kill"   // KILL
	Ignore OnLost = "ignore" // CMD runs on
)

// Plan says when CMD is ended if its lease is not extended. It is arithmetic on
// the time that the lease has left:
//
//	acquired ──── extension, tried again and again ──── TERM ──── KILL ── deadline
//	                                                     │←─── grace ──────→│
//	                                                                │margin→│
type Plan struct {
	mode   OnLost
	grace  time.Duration // TERM is sent with this much left
	margin time.Duration // KILL is sent with this much left
	short  time.Duration // between TERM and KILL if the lease is over already
}

// NewPlan returns the plan for a grace.
func NewPlan(grace time.Duration, mode OnLost) Plan {
	return Plan{mode: mode, grace: grace, margin: grace / 4, short: min(grace/4, 100*time.Millisecond)}
}

// step is what a plan asks for.
type step int

const (
	stepNone step = iota
	stepTerm      // send TERM
	stepKill      // send KILL
)

// due returns what to do about a lease with this much left. taken says that it
// ended before its deadline.
func (p Plan) due(left time.Duration, taken bool) step {
	switch {
	case p.mode == Ignore:
		return stepNone
	case taken && p.mode == Term:
		return stepTerm
	case left <= p.margin:
		return stepKill
	case left <= p.grace && p.mode == Term:
		return stepTerm
	}
	return stepNone
}

// next returns how long nothing is due if the lease is not extended.
func (p Plan) next(left time.Duration) time.Duration {
	if p.mode == Term && left > p.grace {
		return left - p.grace
	}
	return max(left-p.margin, 0)
}
