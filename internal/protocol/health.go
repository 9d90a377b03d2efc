package protocol

import (
	"cmp"
	"slices"
	"time"
)

// This file judges nodes by what a client has seen of them: whether they
// answer, and whether their clocks are correct.

// Health is how a node has answered so far.
type Health struct {
	Failing  bool    // its last call failed
	Late     bool    // by reaching the time limit
	InFlight bool    // it is being asked now
	Since    Instant // when it last answered, or was first asked
}

// suspect reports whether the node does not answer: its last call reached the
// time limit, or those in flight have had no answer for a while.
func (h Health) suspect(now Instant, patience time.Duration) bool {
	return h.Late || h.InFlight && now-h.Since >= patience
}

// Suspects returns the nodes that do not answer. It returns none if the nodes
// that answer are no quorum: then the client has to wait for every node.
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

// Offset returns how far a node's clock is ahead of ours, given the known
// offset and a round trip. The node read its clock during the round trip, so it
// is ahead by at least least and at most most. The known offset is moved only
// as far as that requires: two clocks that agree are better than any estimate,
// and a slow answer must not make it worse.
func Offset(known, least, most time.Duration) time.Duration {
	return max(least, min(known, most))
}

// WrongClocks returns the nodes whose clock differs from the median so much that
// tokens, which are proposed by it, will soon be outside their window. offsets
// has how far each clock is ahead of ours, for the nodes in known. It returns
// false if too few are known to say which are wrong.
func WrongClocks(offsets []time.Duration, known Set, window time.Duration) (wrong Set, judged bool) {
	if known.Count() < 3 || known.Count() < Quorum(len(offsets)) {
		return 0, false
	}
	var buf [MaxNodes]time.Duration
	seen := buf[:0]
	for i, off := range offsets {
		if known.Has(i) {
			seen = append(seen, off)
		}
	}
	median := Median(seen)
	for i, off := range offsets {
		if known.Has(i) && (off-median).Abs() > window/2 {
			wrong |= Of(i)
		}
	}
	return wrong, true
}

// Servers is which node is which server, by the server's id.
type Servers map[string]int

// Found notes that node i is the server with that id, unless another node is: it
// returns which one is. One server must not be counted twice.
func (s Servers) Found(id string, i int) int {
	if _, known := s[id]; !known {
		s[id] = i
	}
	return s[id]
}

// maxProbes is how many calls at once may try a node that did not answer.
const maxProbes = 16

// MayProbe reports whether one more call may try a node that does not answer: a
// few at a time, or one more from time to time if those hang. probes are in
// flight, and the last began since ago.
func MayProbe(probes int, since, patience time.Duration) bool {
	return probes < maxProbes || since >= 4*patience
}

// Median returns the median, so that a minority of wrong values has no effect;
// zero for no values. It sorts the values.
func Median[T cmp.Ordered](values []T) (median T) {
	if len(values) == 0 {
		return median
	}
	slices.Sort(values)
	return values[len(values)/2]
}
