package node

import "time"

// Op says what a Request asks for.
type Op uint8

// The operations of a node.
const (
	// OpAcquire takes the name for Value if it is free, and refreshes it if
	// Value has it already. Granted, Held, Foreign, Reserved, Stale, Behind,
	// Ahead, Quarantined or Misconfigured.
	OpAcquire Op = iota + 1
	// OpExtend gives the name a time to live of TTL from now if Value has it.
	// It never creates. Granted, Held, Foreign, Absent or Misconfigured.
	OpExtend
	// OpRelease frees the name if Value has it, takes Value out of the queue,
	// and raises the fence to Token if it is lower, so that an OpAcquire of
	// the same Value and Token that is still in flight finds itself Stale; a
	// Token that would be Ahead raises nothing. Granted, Held, Foreign or
	// Absent; with Once also Stale or Ahead.
	OpRelease
	// OpInspect changes nothing. Held, Foreign or Absent.
	OpInspect
	// OpRepair gives the name to Value on a node that missed the acquisition,
	// after a quorum of nodes has extended it: if nobody has the name, and
	// the fence is not at Token, which would mean that the node knew of the
	// lock and that it was released. The fence is raised to Token and never
	// lowered; Window and queue do not matter. Granted, Held, Foreign, Stale,
	// Quarantined or Misconfigured.
	OpRepair
	// OpOffer frees the name if Value has it and somebody with a lower Ticket
	// waits, and puts Value into the queue in the same step. Granted means
	// that Value has kept the name, and the fence was raised to Token;
	// otherwise it is as with an OpRelease, and Rank says where Value now
	// waits. It is always as if Once were set. A node that keeps no queue
	// refuses this with an error.
	OpOffer
	// OpMark reads or writes the node's marker, as Mark says. Granted if the
	// marker is valid and the node is trusted, Quarantined, Misconfigured,
	// Stale, or Absent.
	OpMark
	// OpBreak takes the name away from its holder and raises the fence to
	// Token, so that the next holder has a higher one. If the name is held
	// with a fence that is not below Token, it was taken after the break was
	// decided on: Stale. A key that is no plain lock stays unless Foreign is
	// set. Waiters keep their places. Quarantine does not matter; of the
	// marker, the membership alone does. Asking again is harmless. Granted if
	// nobody has the name any more; else Foreign, Stale, Ahead or
	// Misconfigured, and nothing was changed.
	OpBreak
)

// String returns the operation's name.
func (o Op) String() string {
	switch o {
	case OpAcquire:
		return "acquire"
	case OpExtend:
		return "extend"
	case OpRelease:
		return "release"
	case OpInspect:
		return "inspect"
	case OpRepair:
		return "repair"
	case OpOffer:
		return "offer"
	case OpMark:
		return "mark"
	case OpBreak:
		return "break"
	}
	return "unknown operation"
}

// Mode says what kind of lock a Request is about. A node refuses a mode that
// it does not know.
type Mode uint8

// Exclusive is a lock with one holder, and so far the only mode.
const Exclusive Mode = 0

// A Request is what a client asks of a Node.
type Request struct {
	Op   Op
	Mode Mode

	// Name is the key of the lock, prefix included; of an OpMark, a lock whose
	// marker is meant where a node has several, and all of them if it is empty.
	Name string

	// Value is the attempt's own value: unique, and compared whole.
	Value string

	// TTL is how long the lock lives from the moment the node executes an
	// OpAcquire or OpExtend; of an OpMark that changes the membership, how
	// long the node is quarantined at least.
	TTL time.Duration

	// Token is the fencing token proposed (OpAcquire) or held. With 0 the
	// node neither checks nor touches its fence.
	Token Token

	// Window is how far Token may be from the node's clock, in either
	// direction.
	Window time.Duration

	// Retention is how long the node remembers the fence after its last use.
	Retention time.Duration

	// Until, on the node's own clock, is when an OpRepair or OpMark is too
	// late, and Stale: its sender may have released the lock, or decided on
	// another membership, since. Zero for never.
	Until time.Time

	// Once has an OpRelease that is executed a second time change nothing,
	// even if Value has taken the name again since: if Value has it and the
	// fence is not below Token, which is above all that Value asked with
	// before, it is Stale; and if Token could not be the fence, Ahead. Without
	// a Token it means nothing.
	Once bool

	// Wait asks a node that keeps a queue to put Value into it when an
	// OpAcquire is refused with Held, Foreign or Reserved, or, if it is there
	// already, to renew its place. The place of the head lapses when it is not
	// renewed for WaiterLease. Those behind it that were called (WakeCall) and
	// did not ask may then lapse with it.
	Wait bool

	// Ticket is the waiter's arrival in microseconds, the same on every
	// node. The queue is ordered by Ticket, then by Value.
	Ticket int64

	// Barge lets an OpAcquire take a free name though others wait for it.
	Barge bool

	// Guard is what a Guarded node compares its marker with before it grants
	// an OpAcquire or OpRepair; an OpExtend or OpBreak is compared by its
	// membership alone, and an OpExtend must be within its MaxTTL, too. With
	// nil the marker is not looked at. Only an OpMark writes one.
	Guard *Guard

	// Mark says what an OpMark does.
	Mark Mark

	// Foreign has an OpBreak remove a key that is no plain lock.
	Foreign bool
}
