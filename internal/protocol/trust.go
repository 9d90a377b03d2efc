package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is the restart guard: which nodes may have forgotten locks, for how
// long they must not grant, and who may mark them.

// Quarantine returns how long a node that may have forgotten locks must not
// grant: until the last lock that it can have granted has expired by a slow
// clock, and until no token that it can have granted is within the window any
// more, with clocks that are off by up to half of it. If replicas are required,
// with the given lag, this is counted from the last moment at which the master
// that was replaced can have granted or extended.
func Quarantine(maxTTL, window, lag time.Duration) time.Duration {
	q := max(maxTTL, 3*window) + maxTTL/15
	if lag > 0 {
		q += lag + replicaMargin
	}
	return q.Truncate(time.Millisecond)
}

// replicaMargin is for what the lag does not show. A server counts the lag in
// whole seconds, so up to one more second has passed, and the replica's last
// report may have been in flight for another.
const replicaMargin = 2 * time.Second

// Misfit says how a node's marker differs from the client's parameters.
type Misfit uint8

// The differences. The first that applies is used.
const (
	// Fits: nothing that matters differs.
	Fits Misfit = iota
	// Unreadable: the marker has another format.
	Unreadable
	// Barred: a membership change is in progress.
	Barred
	// OtherMembership: the node is marked for other nodes.
	OtherMembership
	// TTLTooLong: the request's TTL is above the marker's.
	TTLTooLong
	// OtherParameters: the membership is the same, but a parameter differs.
	OtherParameters
)

// Compare compares the client's parameters with those of a node that answered
// Misconfigured, to a request with the given TTL.
func Compare(mine node.Guard, theirs *node.Guard, ttl time.Duration) Misfit {
	switch {
	case theirs == nil:
		return Unreadable
	case theirs.Membership == node.BarredMembership:
		return Barred
	case theirs.Membership != mine.Membership:
		return OtherMembership
	case mine.Off && ttl > theirs.MaxTTL:
		return TTLTooLong
	case mine.Off:
		return Fits
	}
	return OtherParameters
}

// The shortest TTL, and the longest that a marker may allow: in milliseconds it
// is far below what every node can count.
const (
	MinTTL    = 10 * time.Millisecond
	MaxMaxTTL = 30 * 24 * time.Hour
)

// MarkerState is what a node's marker says.
type MarkerState struct {
	Marked  *node.Guard   // the marker; nil if it has none
	Trusted bool          // the node grants locks
	Left    time.Duration // how long it will be in quarantine
	Reason  string        // why
}

// Outdated reports whether a node's marker is from before a restart or
// promotion, or from a clock that was set back since.
func Outdated(s MarkerState) bool {
	return s.Marked != nil && !s.Trusted && (s.Left == 0 || s.Left > s.Marked.Quarantine && s.Reason != node.ReasonMembership)
}

// FailedBack reports whether a server was replaced by another, which another node
// has noted, and has come back as it was: its marker's epoch is below the one that
// is known.
func FailedBack(epoch, known uint64) bool { return epoch > 0 && epoch < known }

// Settling is how long it takes until every lock that is extended is back on a
// node that is trusted again. An extension begins a third of the TTL after the
// one before, and the repair follows it.
func Settling(maxTTL time.Duration) time.Duration { return maxTTL / 2 }

// Seen is what one node's marker says, or that the node did not answer.
type Seen struct {
	Answered bool // and does not contradict this membership
	Marked   bool // for this membership, in its highest generation that was seen
	Outdated bool // from before a restart, promotion or change, or from a clock set back since
}

// ToMark returns the nodes that have to be marked.
//
// A node that remembers this membership, from before it restarted, is marked
// for it again. A node that remembers nothing is marked when a quorum confirms
// the membership and its parameters, or when every node has answered and none
// contradicts. One witness is not enough: after a membership change during
// which one node was away, that node would confirm the former membership.
func ToMark(nodes []Seen) (set Set) {
	confirmed, answered := 0, 0
	for _, s := range nodes {
		if s.Answered {
			answered++
			if s.Marked {
				confirmed++
			}
		}
	}
	sure := confirmed >= Quorum(len(nodes)) || answered == len(nodes)
	for i, s := range nodes {
		if s.Answered && (!s.Marked && sure || s.Outdated) {
			set |= Of(i)
		}
	}
	return set
}
