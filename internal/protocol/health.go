package protocol

import (
	"cmp"
	"slices"
	"time"
)

// This file judges nodes by what a client has seen of them: whether they answer,
// and whether their clocks are right.

// Health is how a node has answered so far.
type Health struct {
	Failing  bool    // its last call failed
	Late     bool    // and did so by running into the time limit
	InFlight bool    // it is being asked now
	Since    Instant // when it last answered, or was first asked
}

// suspect reports that the node is not answering: its last call ran into the time
// limit, or those in flight have had no answer for a while.
func (h Health) suspect(now Instant, patience time.Duration) bool {
	return h.Late || h.InFlight && now-h.Since >= patience
}

// Suspects returns the nodes that are not answering, or none of them if those that
// answer are no quorum: then every node is worth waiting for.
func Suspects(nodes []Health, now Instant, patience time.Duration) Set {
	var suspects, failing Set
	for i, h := range nodes {
		if h.suspect(now, patience) {
			suspects |= Of(i)
		}
		if h.Failing {
			failing |= Of(i)
		}
	}
	if len(nodes)-(suspects|failing).Count() < Quorum(len(nodes)) {
		return 0
	}
	return suspects
}

// Offset returns how far a node's clock is ahead of ours, given what was known and
// a round trip. The node looked at its clock at some time in between, so it is
// ahead by no more than most and no less than least. What is known is moved no
// further than that: two clocks that agree are better than any estimate, and a
// slow answer must not make it worse.
func Offset(known, least, most time.Duration) time.Duration {
	return max(least, min(known, most))
}

// WrongClock reports that a clock which is off by so much from the median is soon
// outside the window: tokens are proposed by the median.
func WrongClock(off, window time.Duration) bool { return off.Abs() > window/2 }

// Median returns the median, in which a minority of wrong values has no say; zero
// of none. It sorts the values.
func Median[T cmp.Ordered](values []T) (median T) {
	if len(values) == 0 {
		return median
	}
	slices.Sort(values)
	return values[len(values)/2]
}
