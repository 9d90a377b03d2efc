package protocol

import "github.com/redlatch/redlatch/node"

// This file decides which cluster parameters a client takes from the nodes'
// markers, and which markers have to be renewed because of them.

// Fixed says which parameters the caller set, so that they are not adopted.
type Fixed struct{ MaxTTL, Replicas bool }

// Adopted returns mine with the parameters and the generation of a marker of the
// same membership, if they differ and the caller did not set them. A marker of a
// lower generation says nothing. One of the same generation with shorter parameters
// was written after all nodes had lost theirs, by a client that did not know them: a
// lock may be held for as long as they allowed.
func Adopted(mine, theirs node.Guard, fixed Fixed) (node.Guard, bool) {
	theirs = theirs.Shared()
	theirs.Nodes, theirs.Off = mine.Nodes, mine.Off
	switch {
	case mine.Off, theirs == mine, theirs.Membership != mine.Membership, theirs.Generation < mine.Generation:
		return mine, false
	case fixed.MaxTTL && theirs.MaxTTL != mine.MaxTTL, fixed.Replicas && theirs.Replicas != mine.Replicas:
		return mine, false
	case theirs.Generation == mine.Generation && (theirs.MaxTTL < mine.MaxTTL || theirs.Window < mine.Window ||
		theirs.Replicas < mine.Replicas || theirs.ReplicaLag < mine.ReplicaLag):
		return mine, false
	case theirs.MaxTTL < MinTTL, theirs.MaxTTL > MaxMaxTTL, (theirs.Replicas > 0) != (theirs.ReplicaLag > 0),
		theirs.Quarantine < Quarantine(theirs.MaxTTL, theirs.Window, theirs.ReplicaLag):
		return mine, false
	}
	return theirs, true
}

// AdoptedFrom is Adopted for several markers: the first that differs is taken,
// and then those of a higher generation. matter reports whether any of them could be.
func AdoptedFrom(mine node.Guard, theirs []node.Guard, fixed Fixed) (next node.Guard, matter bool) {
	next = mine
	for _, their := range theirs {
		matter = matter || !mine.Off && their.Membership == mine.Membership
		if adopted, ok := Adopted(next, their, fixed); ok && (next == mine || adopted.Generation > next.Generation) {
			next = adopted
		}
	}
	return next, matter
}

// AgreedMarker returns the parameters that the markers of a quorum of n nodes
// have, if there are such: no further marker can change them.
func AgreedMarker(markers []node.Guard, n int) (node.Guard, bool) {
	votes := map[node.Guard]int{}
	for _, m := range markers {
		key := m.Shared()
		if votes[key]++; votes[key] >= Quorum(n) {
			return m, true
		}
	}
	return node.Guard{}, false
}

// Following returns mine with the parameters of a former membership, as far as
// the caller did not set them. It takes the longest values.
func Following(mine, former node.Guard, fixed Fixed) node.Guard {
	if !fixed.MaxTTL {
		mine.MaxTTL, mine.Window = max(mine.MaxTTL, former.MaxTTL), max(mine.Window, former.Window)
	}
	if !fixed.Replicas {
		mine.Replicas = max(mine.Replicas, former.Replicas)
	}
	if mine.Replicas > 0 {
		mine.ReplicaLag = max(mine.ReplicaLag, former.ReplicaLag)
	}
	mine.Quarantine = Quarantine(mine.MaxTTL, mine.Window, mine.ReplicaLag)
	return mine
}

// MissedChange reports whether a node refused because it missed a membership
// change: its marker is of this membership, in a lower generation.
func MissedChange(mine node.Guard, r *node.Reply) bool {
	return r.Status == node.Misconfigured && r.Guard != nil && !mine.Off &&
		r.Guard.Membership == mine.Membership && r.Guard.Generation < mine.Generation
}

// NeedsMarking reports whether a reply shows that a node may have to be marked. behind
// says that one has not noted what is known of epochs. While another membership was seen
// on a node, other, a grant may show that ours is back.
func NeedsMarking(mine *node.Guard, r *node.Reply, behind, other bool) bool {
	changed := r.Status == node.Misconfigured && ReturnsFrom(mine, r.Guard) > 0 || r.Status == node.Granted && other
	return behind || r.NeedsMark || !mine.Off && changed || MissedChange(*mine, r)
}

// ReplacedMarker reports whether a membership change has already marked a node
// for this membership, so that it is not marked again.
func ReplacedMarker(mine node.Guard, s MarkerState) bool {
	return s.Marked != nil && s.Marked.Agrees(&mine) && s.Marked.Generation >= mine.Generation && !Outdated(s)
}
