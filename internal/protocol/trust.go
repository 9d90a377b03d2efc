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
// more, with clocks that are off by up to half of it. It is counted from when the node
// is marked. If replicas are required, the given lag is added: for so long after its
// replica was promoted, a master that was replaced can have granted or extended.
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
	// OtherMaxTTL and those after it: the membership is the same, but a parameter
	// differs.
	OtherMaxTTL
	OtherWindow
	OtherReplicas
	OtherQuarantine
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
	case theirs.MaxTTL != mine.MaxTTL:
		return OtherMaxTTL
	case theirs.Window != mine.Window:
		return OtherWindow
	case theirs.Replicas != mine.Replicas:
		return OtherReplicas
	}
	return OtherQuarantine
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

// Says returns what a reply says of the marker.
func Says(r *node.MarkReply) MarkerState {
	s := MarkerState{Marked: r.Guard, Trusted: r.Status == node.Granted}
	switch {
	case r.Status == node.Quarantined:
		s.Left, s.Reason = r.Left, r.Reason
	case r.Status == node.Misconfigured:
		if s.Left = r.Left; r.Guard.Barred() {
			s.Reason = node.ReasonBarred
		}
	}
	return s
}

// Outdated reports whether a node's marker is from before a restart, promotion or
// change, or from a clock that was set back since. Of a node that contradicts the
// membership it says nothing: such an answer looks the same.
func Outdated(s MarkerState) bool {
	return s.Marked != nil && !s.Trusted && s.Left == 0
}

// Settling is how long it takes until every lock that is extended is back on a
// node that is trusted again. An extension begins a third of the TTL after the
// one before, and the repair follows it. The rest is for rivals that are granted
// the lock there first, and give it up.
func Settling(maxTTL time.Duration) time.Duration { return maxTTL }

// Seen is what one node's marker says, or that the node did not answer.
type Seen struct {
	Answered bool // and does not contradict this membership
	Marked   bool // for this membership, in its highest generation that was seen
	Outdated bool // from before a restart, promotion or change, or from a clock set back since
	Trusted  bool // it grants to this membership
	Used     bool // it is, or has been, in service

	Generation uint64 // of this membership, if it is marked for it
	Lineage    string // in its marker, if it is Marked
	Epoch      uint64 // the highest that is known of it
	Other      uint64 // the generation of another membership that it is marked or barred for
}

// See returns what a node's marker says to a client with these parameters. answered says
// that the node answered, and does not contradict. known is the highest epoch that is
// known of it.
func See(mine *node.Guard, s MarkerState, answered bool, lineage string, known uint64) Seen {
	seen := Seen{
		Answered: answered,
		Marked:   answered && s.Marked != nil && s.Marked.Generation >= mine.Generation,
		Outdated: Outdated(s),
		Epoch:    known,
		Trusted:  s.Trusted,
		Used:     BeenInService(s),
	}
	switch {
	case s.Marked == nil:
	case s.Marked.Membership != mine.Membership:
		seen.Other = s.Marked.Generation
	default:
		if seen.Generation = s.Marked.Generation; seen.Marked {
			seen.Lineage = lineage
		}
	}
	return seen
}

// ReturnsFrom returns the generation from which on a membership is Returned, after a
// marker was seen; 0 if that is not of another membership, nor barred.
func ReturnsFrom(mine, theirs *node.Guard) uint64 {
	switch {
	case theirs == nil || theirs.Membership == mine.Membership:
		return 0
	case theirs.Barred(): // it has the generation of the change, which may be one to ours
		return theirs.Generation
	}
	return theirs.Generation + 1
}

// ToMark returns the nodes that have to be marked.
//
// A node that remembers this membership, from before it restarted, is marked
// for it again. A node that remembers nothing is marked when a quorum confirms
// the membership and its parameters, or when every node has answered and none
// contradicts. One witness is not enough: after a membership change during
// which one node was away, that node would confirm the former membership. Nor are
// answers of all nodes enough, if another membership was seen on one: they look like
// nodes of a former membership that have lost their data. returns is 0 if no other was
// seen, or this one has Returned since; otherwise the generation from which on it is.
func ToMark(nodes []Seen, returns uint64) (set Set) {
	confirmed, answered := Confirmed(nodes), count(nodes, func(s Seen) bool { return s.Answered })
	sure := confirmed >= Quorum(len(nodes)) || answered == len(nodes) && returns == 0
	for i, s := range nodes {
		if s.Answered && (!s.Marked && sure || s.Outdated) {
			set |= Of(i)
		}
	}
	return set
}

// Confirmed returns how many nodes confirm the membership and its parameters.
func Confirmed(nodes []Seen) int { return count(nodes, func(s Seen) bool { return s.Marked }) }

// count returns of how many nodes something is true.
func count(nodes []Seen, is func(Seen) bool) (n int) {
	for _, s := range nodes {
		if is(s) {
			n++
		}
	}
	return n
}

// Returned reports whether this membership is in service after another one was seen
// on one of its nodes: a quorum is marked for it in such a generation or a higher one.
func Returned(nodes []Seen, generation uint64) bool {
	return count(nodes, func(s Seen) bool { return s.Marked && s.Generation >= generation }) >= Quorum(len(nodes))
}

// ToTake returns the nodes that another membership has marked, or barred, in a lower
// generation than this one's, while a quorum is in service for this one. A process
// with the list of a former membership has put them into service when they had lost
// their data. They are marked again before they grant: the extension of a lease that
// is held finds them within MaxTTL. That is shorter than the quarantine which the former
// membership gave them, unless its own MaxTTL was shorter.
func ToTake(nodes []Seen, generation uint64) (set Set) {
	if count(nodes, func(s Seen) bool { return s.Trusted && s.Marked && s.Generation == generation }) < Quorum(len(nodes)) {
		return 0
	}
	for i, s := range nodes {
		if s.Other > 0 && s.Other < generation {
			set |= Of(i)
		}
	}
	return set
}

// Lineages returns the lineage that each node has when those in mark have been marked,
// and the epochs that all nodes note before. known is what they have noted and shown,
// and draw returns a new lineage.
//
// A node keeps its lineage if that is listed, and no other node shows it. Its epoch
// tells it from a copy of its data, and from what it was before. Any other node has
// taken the place of one that is not known: its data is gone, or from before another
// server was there. It is given a new lineage, and each lineage is over that no node
// shows. So is that of a node that is only away: it is marked again when it returns.
func Lineages(nodes []Seen, mark Set, known node.Epochs, draw func() string) (lineages []string, epochs node.Epochs) {
	lineages = make([]string, len(nodes))
	least, times := known.Map(), map[string]int{}
	highest := uint64(0)
	for _, epoch := range least {
		highest = max(highest, epoch)
	}
	for _, s := range nodes {
		times[s.Lineage]++
		highest = max(highest, s.Epoch)
	}
	noted := map[string]uint64{}
	for i, s := range nodes {
		_, listed := least[s.Lineage]
		switch {
		case !mark.Has(i):
			if lineages[i] = s.Lineage; s.Lineage != "" {
				noted[s.Lineage] = max(known.Of(s.Lineage), s.Epoch)
			}
		case listed && times[s.Lineage] == 1:
			lineages[i] = s.Lineage
			noted[s.Lineage] = max(least[s.Lineage], s.Epoch) + 1
		default:
			lineages[i] = draw()
			noted[lineages[i]], noted[node.OtherLineages] = highest+1, highest+1
		}
	}
	return lineages, known.Merge(node.NewEpochs(noted))
}
