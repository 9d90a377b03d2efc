package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file decides how long a claim waits for nodes: for those that do not
// answer, and for those that are quarantined.

// OutagePatience is how long a caller that set no limit waits for a quorum of
// nodes. outageRounds is how many rounds in a row must have no quorum before
// that wait ends: nodes that miss the time limit of one round may only be slow.
const (
	OutagePatience = 2 * time.Second
	outageRounds   = 3
)

// OutageLasts reports whether an outage ends such a wait.
func OutageLasts(since time.Duration, rounds int32) bool {
	return since >= OutagePatience && rounds >= outageRounds
}

// Shortage says why a round had no quorum of nodes that may grant.
type Shortage uint8

// The kinds of shortage.
const (
	// NoShortage: a quorum may grant.
	NoShortage Shortage = iota
	// Outage: too few nodes answered, or too few may grant.
	Outage
	// Quarantines: only quarantines, which end by themselves, kept it from one.
	Quarantines
)

// Shortage returns why the round had no quorum of nodes that may grant.
func (t Tally) Shortage() Shortage {
	switch {
	case t.Available():
		return NoShortage
	case t.Nodes-t.Failed-t.Unfit+t.Quarantined >= Quorum(t.Nodes):
		return Quarantines
	}
	return Outage
}

// AsksBeside reports whether a caller does not wait in its process behind another
// that found this shortage: in an outage each caller that set no limit has its own
// patience, and in a quarantine no caller's limit counts.
func (s Shortage) AsksBeside(unbounded bool) bool {
	return s == Quarantines || s == Outage && unbounded
}

// countOutage notes what kept the last round from a quorum: nothing, quarantines
// that end by themselves, or an outage. A quarantine that lasts longer than
// QuarantineWait counts as an outage that began with it.
func (c *Claim) countOutage(now Instant, t Tally) {
	w := &c.wait
	if since, ok := w.quarantine.Get(); ok {
		passed := now - since
		w.paused += min(passed, max(c.cfg.QuarantineWait-w.spent, 0))
		w.spent += passed
		w.quarantine = When{}
	}
	shortage := t.Shortage()
	if shortage == NoShortage {
		w.outage, w.missing, w.spent = When{}, 0, 0
		return
	}
	w.missing++
	switch {
	case shortage == Outage:
		if !w.outage.IsSet() {
			w.outage = At(c.round.Start)
		}
	case w.spent < c.cfg.QuarantineWait:
		w.outage, w.quarantine = When{}, At(now)
	case !w.outage.IsSet():
		w.outage = At(now - w.spent)
	}
}

// waitsUntil returns when the wait is over.
func (c *Claim) waitsUntil(now Instant) When {
	w := &c.wait
	until := c.cfg.Until
	if at, ok := until.Get(); ok {
		until = At(at + w.paused)
	}
	if w.quarantine.IsSet() && (until.IsSet() || c.cfg.Unbounded) {
		return At(max(until.Or(now), now) + c.cfg.QuarantineWait - w.spent)
	}
	if since, ok := w.outage.Get(); ok && c.cfg.Unbounded {
		until = At(since + OutagePatience)
		if until.Reached(now) && !OutageLasts(now-since, w.missing) {
			return When{}
		}
	}
	return until
}

// quarantinePoll is the longest time between two rounds while nodes are
// quarantined. The end of the quarantine is known, but other nodes may be back
// before.
const quarantinePoll = 2 * time.Second

// quarantineDelay is how long to wait while only quarantines prevent a quorum:
// until enough of them end, and often enough to notice nodes that are back
// before.
func (c *Claim) quarantineDelay(v View) time.Duration {
	var buf [MaxNodes]time.Duration
	left := buf[:0]
	for i := range c.cfg.Nodes {
		switch m := &c.nodes[i]; {
		case m.quarantined():
			left = append(left, m.left.duration())
		case m.got == Replied && m.status != node.Quarantined && m.status != node.Misconfigured:
			left = append(left, 0)
		}
	}
	ends := QuorumAfter(left, c.cfg.Nodes)
	poll := max(c.random(v), min(ends/2, quarantinePoll))
	return min(poll, ends+time.Millisecond+v.Random(c.cfg.RetryDelay/20+time.Millisecond))
}

// Paused returns how long the wait did not count, because nodes were
// quarantined.
func (c *Claim) Paused() time.Duration { return c.wait.paused }
