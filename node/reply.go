package node

import "time"

// Status is the result of a Request.
type Status uint8

// What a node can answer.
const (
	// Granted: the request was executed.
	Granted Status = iota + 1
	// Held: the name is held, and has no room for us; or it has none for the
	// head of the queue, which is before us. Value says by which holder, the
	// first of them, and Left for how long.
	Held
	// Foreign: something that is not a plain lock has the name. Format says what
	// it is, Left for how long.
	Foreign
	// Absent: the name is free.
	Absent
	// Reserved: there is room, but it is kept for waiters before us in the
	// queue. Left, if it is not 0, says when we have to check whether that
	// waiter has taken it, because nobody else may check.
	Reserved
	// Stale: Token is not above the fence; for Shared, not above the floor.
	Stale
	// Behind: Token is behind the node's clock by more than Window.
	Behind
	// Ahead: Token is ahead of the node's clock by more than Window, and above
	// the fence by more than TokenLeap.
	Ahead
	// Quarantined: the node may have forgotten locks and does not grant until it is
	// marked, and they have expired after that. Left says how long the quarantine lasts:
	// if it NeedsMark, from the moment when it is marked. Reason says why.
	Quarantined
	// Misconfigured: the node is marked for another membership, or with other
	// cluster parameters. Guard says which.
	Misconfigured
)

// The reasons of a quarantine.
const (
	// ReasonNew: the node had no marker. It is new, or has lost all its data.
	ReasonNew = "new"
	// ReasonFresh: the node was declared new, and trusted at once. It is the
	// reason of a quarantine only if the node's clock was set back since.
	ReasonFresh = "fresh"
	// ReasonChanged: the node restarted, or was promoted, since it was marked.
	ReasonChanged = "changed"
	// ReasonMembership: the node's membership was changed.
	ReasonMembership = "membership"
	// ReasonBarred: the node's membership is being changed. Only a read of the
	// node's marker reports it; a request for a lock is answered with
	// Misconfigured.
	ReasonBarred = "barred"
)

// String returns the status in words.
func (s Status) String() string {
	if s == 0 || int(s) >= len(statusTexts) {
		return "unknown status"
	}
	return statusTexts[s]
}

var statusTexts = [...]string{
	Granted:       "granted",
	Held:          "held by another",
	Foreign:       "held by a foreign format",
	Absent:        "not held",
	Reserved:      "reserved for a waiter",
	Stale:         "token is stale",
	Behind:        "token is behind the node's clock",
	Ahead:         "token is ahead of the node's clock",
	Quarantined:   "quarantined",
	Misconfigured: "marked for another membership",
}

// A Reply is a Node's answer. It has all that the caller needs next, so that no
// second request is needed.
type Reply struct {
	Status Status

	// Taken says who has the name.
	Taken

	// Left is how long the name remains taken (Held, Foreign), NoExpiry if for
	// ever: until a slot is free, for a Slotted request to a name with as many
	// slots, else until all holders have expired; how long it is kept for
	// another waiter (Reserved); or how long the node remains quarantined
	// (Quarantined).
	Left time.Duration

	// Fence is the highest token that this node granted for this name; 0 if it
	// remembers none.
	Fence Token

	// Confirmed says that the tokens of an OpExtend with a Reserve are reserved.
	Confirmed bool

	// Queued is our place in the node's queue.
	Queued

	// Now is the node's clock when it answered. It may be zero in the reply to an
	// OpRelease that was granted.
	Now time.Time

	// Clockless says that the node has no clock, so that nothing can be learned
	// from Now: it is Request.Clock, or else the clock of this process.
	Clockless bool

	// Again says that a Starter had to send the request again: requests that
	// were started after it may have been executed before it.
	Again bool

	// Marker is what the node says of its marker, for a request with a Guard.
	Marker
}

// Taken is what a Reply says of those who have the name.
type Taken struct {
	// Value is the holder's value, of the first holder (Held). HolderToken is the
	// token with which it was last granted the name; 0 if it has none. It is below
	// Fence if others have raised the fence since: with the release of a failed
	// attempt, or before a repair.
	Value       string
	HolderToken Token
	// Share is what that holder has (Held), or what was granted, with its slot
	// (Granted, to an OpAcquire).
	Share Share
	// Holders is the number of holders (Held).
	Holders int
	// Free has the slots that are free now (Granted, Held or Reserved, to a
	// Slotted OpAcquire).
	Free SlotSet
	// Format is what has the name, if that is no plain lock (Foreign).
	Format string
}

// Queued is what a Reply says of the node's queue.
type Queued struct {
	// Rank is our place after this request: 1 for the head, 0 if we are not in the
	// queue or the node keeps none.
	Rank int
	// Wakes says that the node will notify us when the name is kept for us.
	Wakes bool
	// Next is the lowest Ticket in the queue, if tokens were reserved; 0 if nobody
	// waits.
	Next int64
}

// NoExpiry as a time left means that the key has no expiry at all.
const NoExpiry time.Duration = -1
