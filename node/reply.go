package node

import "time"

// Status is the essence of a Reply.
type Status uint8

// What a node can answer.
const (
	// Granted: the request was executed.
	Granted Status = iota + 1
	// Held: another value has the name. Value and Left say which and for how
	// long.
	Held
	// Foreign: the name is taken by something that is not a plain lock.
	// Value says what it is, Left for how long.
	Foreign
	// Absent: nobody has the name.
	Absent
	// Reserved: nobody has the name, but a waiter before us in the queue is to
	// have it. Left, if it is not 0, says when we have to check whether that
	// waiter has taken it, since nobody else may.
	Reserved
	// Stale: Token is not above the fence.
	Stale
	// Behind: Token is more than Window behind the node's clock.
	Behind
	// Ahead: Token is more than Window ahead of the node's clock, and more
	// than TokenLeap above the fence.
	Ahead
	// Quarantined: the node may have forgotten locks and does not grant until
	// they have expired. Left says for how long, Value why.
	Quarantined
	// Misconfigured: the node is marked for another membership, or with other
	// cluster parameters. Guard says which.
	Misconfigured
)

// Why a node is in quarantine.
const (
	// ReasonNew: it carried no marker. It is new, or has lost all its data.
	ReasonNew = "new"
	// ReasonFresh: it was declared new, and trusted at once. It is the reason
	// of a quarantine only if the node's clock was set back since.
	ReasonFresh = "fresh"
	// ReasonChanged: it restarted, or was promoted, since it was marked.
	ReasonChanged = "changed"
	// ReasonList: its membership was changed.
	ReasonList = "list"
	// ReasonBarred: its membership is being changed. It is reported by a look
	// at the node's state alone: who wants a lock finds it Misconfigured.
	ReasonBarred = "barred"
	// ReasonUnmarked: it carries no marker. The quarantine begins when an
	// OpMark writes one.
	ReasonUnmarked = "unmarked"
	// ReasonRemark: its marker is from before it restarted or was promoted, or
	// by a clock that was set back since. The quarantine begins when it is
	// marked again.
	ReasonRemark = "remark"
)

// String returns the status in words.
func (s Status) String() string {
	switch s {
	case Granted:
		return "granted"
	case Held:
		return "held by another"
	case Foreign:
		return "held by a foreign format"
	case Absent:
		return "not held"
	case Reserved:
		return "reserved for a waiter"
	case Stale:
		return "token is stale"
	case Behind:
		return "token is behind the node's clock"
	case Ahead:
		return "token is ahead of the node's clock"
	case Quarantined:
		return "in quarantine"
	case Misconfigured:
		return "marked for another list of nodes"
	}
	return "unknown status"
}

// A Reply is a Node's answer. It carries what the caller needs next, so that
// no second question is asked.
type Reply struct {
	Status Status

	// Value is the holder's value (Held), the foreign format's name (Foreign),
	// the reason (Quarantined), ReasonRemark for a node that has extended and
	// has to be marked (Granted, to an OpExtend), or the version of a marker
	// that cannot be read (Misconfigured, without a Guard).
	Value string

	// Left is how long the name remains taken (Held, Foreign), NoExpiry if for
	// ever; how long it is kept for another (Reserved); or how long the node
	// remains quarantined (Quarantined).
	Left time.Duration

	// Fence is the highest token granted on this node for this name, as far
	// as it remembers; 0 if it does not.
	Fence Token

	// HolderToken is the token with which the holder was last granted the name
	// (Held); 0 if it has none. It is below Fence where others raised that
	// meanwhile: with a release of what they had asked for, or before a repair.
	HolderToken Token

	// Now is the node's clock when it answered.
	Now time.Time

	// Server is the server that granted, as far as the node knows: in one
	// round no two nodes may name the same. An address can lead to another
	// server at any time.
	Server string

	// Guard is what the node's marker says (Misconfigured, and to an OpMark).
	Guard *Guard

	// TrustedFrom is since when the node may grant, on its own clock (to an
	// OpMark); zero if it never was in quarantine.
	TrustedFrom time.Time

	// Replicas is how many replicas of the node are online, with the lag that
	// its marker allows (to an OpMark).
	Replicas int

	// Rank is our place in the queue after this request: 1 for the head, 0
	// if we are not in it or the node keeps none.
	Rank int

	// Wakes says that the node will notify us when it is our turn.
	Wakes bool
}

// NoExpiry as a time left means that the key has no expiry at all.
const NoExpiry time.Duration = -1

// NeedsMark reports whether the reply says that its node has to be marked.
func (r Reply) NeedsMark() bool {
	return r.Status == Quarantined && r.Value == ReasonUnmarked || (r.Status == Quarantined || r.Status == Granted) && r.Value == ReasonRemark
}
