package redlatch

import (
	"context"
	"time"
)

// A Node is one independent place that can grant a lock: a Redis master, a
// file, a table. A Client asks one Node, or a majority of several.
//
// A Node carries out each Request atomically with regard to every other
// Request for the same name, from whichever process. Package nodetest holds
// the conformance suite that says so; a new kind of node starts there.
//
// What a node can do beyond this it says by implementing the small interfaces
// below, Lister, Evidencer and Examiner: Prompt, Identifier, Slow, Guarded, Waker.
type Node interface {
	// Do carries out one request and gives one reply. A refusal is a Reply;
	// an error means that the node could not say yes or no. An error that
	// wraps ErrUnsent promises that the request had no effect and will have
	// none; after any other error the request may have been carried out, or
	// may be yet.
	Do(ctx context.Context, req Request) (Reply, error)

	// String names the node in errors, in logs, and in the membership that
	// guarded nodes are marked with, so that all clients must use the same
	// name. It is stable, differs between nodes, and holds no secret.
	String() string

	// Close frees what the node holds open. Locks on it stay as they are.
	Close() error
}

// Prompt is implemented by a Node whose Do returns by the deadline of its
// context without help. A client with a single prompt node calls it on the
// caller's goroutine if the caller's context cannot end; any other call is
// watched from a second one.
type Prompt interface {
	Node
	// ReturnsByDeadline reports whether Do can be relied on to return when
	// the context's deadline passes.
	ReturnsByDeadline() bool
}

// Identifier is implemented by a Node that can say which server it is, so that
// one server reached by two addresses is not counted twice.
type Identifier interface {
	Node
	// Identity returns a text that two nodes share only if they are the same
	// server, and the node's clock. Empty, and the zero time, mean that the
	// server would not say.
	Identity(ctx context.Context) (id string, now time.Time, err error)
}

// Slow is implemented by a Node that can take longer to answer than a server
// would, and that should be waited for all the same.
type Slow interface {
	Node
	// TimeLimit is the node time limit to use where Options.NodeTimeout
	// leaves it open.
	TimeLimit() time.Duration
}

// Guarded is implemented by a Node that carries a marker, by which it can tell
// that it may have forgotten locks. Such a node heeds Request.Guard.
type Guarded interface {
	Node
	// GuardsAlone reports whether the guard is wanted even where this is the
	// only node: because what stands behind it can change to a server that
	// lacks the last writes.
	GuardsAlone() bool
}

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
	// the same Value and Token that is still under way finds itself Stale; a
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
	// marker stands and the node is trusted, Quarantined, Misconfigured,
	// Stale, or Absent.
	OpMark
	// OpBreak takes the name away from whoever has it and raises the fence to
	// Token, so that whoever has it next has a higher one. Somebody who has it
	// with a fence that is not below Token took it after the break was decided
	// on: Stale.
	// A key that is no plain lock stays unless Foreign says otherwise. Those
	// who wait keep their places. Quarantine does not matter; of the marker, the list alone does. Asking
	// again is harmless. Granted if nobody has the name any more, else Foreign,
	// Stale, Ahead or Misconfigured, and nothing was changed.
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

// A Request is what a Client asks of a Node.
type Request struct {
	Op   Op
	Mode Mode

	// Name is the key of the lock, prefix included; of an OpMark, a lock whose
	// marker is meant where a node has several, and all of them if it is empty.
	Name string

	// Value is the attempt's own value: unique, and compared whole.
	Value string

	// TTL is how long the lock lives from the moment the node carries out
	// an OpAcquire or OpExtend; of an OpMark that changes the list, how long
	// the node sits out at least.
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
	// late, and Stale: whoever sent it may have released the lock, or decided
	// on another list, since. Zero for never.
	Until time.Time

	// Once has an OpRelease that is carried out a second time change nothing,
	// though Value has taken the name again since: if Value has it and the
	// fence is not below Token, which is above all that Value asked with
	// before, it is Stale; and if Token could not be the fence, Ahead. Without
	// a Token it means nothing.
	Once bool

	// Wait asks a node that keeps a queue to put Value into it when an
	// OpAcquire is refused with Held, Foreign or Reserved, or, if it stands
	// there already, to renew its place. The place of the first in line
	// lapses when it is not renewed for WaiterLease. Then those behind it may
	// lapse with it that were called (WakeCall) and did not ask.
	Wait bool

	// Ticket is the waiter's arrival in microseconds, the same on every
	// node. The queue is ordered by Ticket, then by Value.
	Ticket int64

	// Barge lets an OpAcquire take a free name though others wait for it.
	Barge bool

	// Guard is what a Guarded node holds its marker against before it grants
	// an OpAcquire or OpRepair, and, as to the list alone, an OpExtend or
	// OpBreak; an OpExtend must be within its MaxTTL, too. Nil leaves the
	// marker alone. None but an OpMark writes one.
	Guard *Guard

	// Mark says what an OpMark does.
	Mark Mark

	// Foreign has an OpBreak remove a key that is no plain lock.
	Foreign bool
}

// Guard is what a node's marker says of the list of nodes that it belongs to.
// Clients of one list agree on all of it.
type Guard struct {
	// List is the id of the list: 16 hexadecimal digits.
	List string
	// Nodes is the list in words.
	Nodes string
	// MaxTTL is the longest time to live of a lock.
	MaxTTL time.Duration
	// Window is how far a token may be from a node's clock.
	Window time.Duration
	// Quarantine is how long a node that may have forgotten locks does not
	// grant.
	Quarantine time.Duration
	// Replicas is how many replicas of a node must be online for it to grant
	// and extend; 0 for none. With fewer it answers with an error.
	Replicas int
	// ReplicaLag is how long ago such a replica may have been heard from, in
	// whole seconds; 0 if Replicas is.
	ReplicaLag time.Duration
	// Off says that the client's guard is off: a node without a marker grants,
	// and of a marker the list and MaxTTL alone count.
	Off bool
}

// Mark says what an OpMark does.
type Mark uint8

// What an OpMark can do.
const (
	// MarkRead writes nothing.
	MarkRead Mark = iota
	// MarkWrite writes the marker, with a quarantine, where there is none or
	// it is not this server's, or by a clock that was set back since.
	MarkWrite
	// MarkFresh is like MarkWrite, and trusts the node at once: it has
	// forgotten nothing, because there was nothing.
	MarkFresh
	// MarkReplace writes the marker over another list's, with a quarantine of
	// TTL at least.
	MarkReplace
	// MarkBar takes the node out of its list and into none: it is marked for
	// BarredList, until a MarkReplace. A node that is marked for the list of
	// the Guard already stays as it is. Misconfigured, with what it is marked
	// with now.
	MarkBar
)

// BarredList is the List of a node that a change of the list of nodes has
// barred. No client's list has this id, so it grants to nobody and speaks for
// no list, for as long as it takes, and whatever release asks it.
const BarredList = "0000000000000000"

// Status is the essence of a Reply.
type Status uint8

// What a node can answer.
const (
	// Granted: what was asked has been done.
	Granted Status = iota + 1
	// Held: another value has the name. Value and Left say which and for how
	// long.
	Held
	// Foreign: the name is taken by something that is not a plain lock.
	// Value says what it is, Left for how long.
	Foreign
	// Absent: nobody has the name.
	Absent
	// Reserved: nobody has the name, but somebody before us in the queue is
	// to have it. Left, if it is not 0, says when we are to look whether that
	// one has come for it, since nobody else may.
	Reserved
	// Stale: Token is not above the fence.
	Stale
	// Behind: Token is more than Window behind the node's clock.
	Behind
	// Ahead: Token is more than Window ahead of the node's clock, and more
	// than TokenLeap above the fence.
	Ahead
	// Quarantined: the node may have forgotten locks and does not grant until
	// they have run out. Left says for how long yet, Value why.
	Quarantined
	// Misconfigured: the node is marked for another list of nodes, or with
	// other bounds. Guard says which.
	Misconfigured
)

// Why a node is in quarantine.
const (
	// ReasonNew: it carried no marker. It is new, or has lost all its data.
	ReasonNew = "new"
	// ReasonFresh: it was declared new, and trusted at once. It is the reason
	// of a quarantine only if the node's clock was set back since.
	ReasonFresh = "fresh"
	// ReasonChanged: it started anew, or was promoted, since it was marked.
	ReasonChanged = "changed"
	// ReasonList: its list of nodes was changed.
	ReasonList = "list"
	// ReasonBarred: its list of nodes is being changed. It is the reason of a
	// NodeState alone: to those who want a lock such a node is Misconfigured.
	ReasonBarred = "barred"
	// ReasonUnmarked: it carries no marker. It is in quarantine from when it is
	// marked, which an OpMark does.
	ReasonUnmarked = "unmarked"
	// ReasonRemark: its marker is from before it started or was promoted, or by
	// a clock that was set back since. It is in quarantine from when it is
	// marked again.
	ReasonRemark = "remark"
)

// TokenLeap is how far above a node's fence a token may be whatever the node's
// clock says: without it a clock that was set back would lock everyone out.
const TokenLeap = 1000

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
	// has to be marked (Granted, to an OpExtend), or the version of a marker that cannot be read
	// (Misconfigured, without a Guard).
	Value string

	// Left is how long the name is taken yet (Held, Foreign), NoExpiry if for
	// ever; how long it is kept for another (Reserved); or how long the node
	// sits out yet (Quarantined).
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

	// Server is the server that granted, as far as the node can tell: in one
	// round no two nodes may name the same. An address can be led to another
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

	// Wakes says that the node will tell us when it is our turn.
	Wakes bool
}

// NoExpiry as a time left means that the key has no expiry at all.
const NoExpiry time.Duration = -1
