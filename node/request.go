package node

import "time"

// Op is the operation of a Request.
type Op uint8

// The operations of a node.
const (
	// OpAcquire takes a share of the name for Value if no holder conflicts with
	// it, and refreshes it if Value holds it already; then a Slotted one moves
	// to another slot if it asks for that one with a higher Token and it is
	// free. A copy of a request, and one without a Token, does not move it.
	// Granted, Held, Foreign, Reserved, Stale, Behind, Ahead, Quarantined or
	// Misconfigured.
	OpAcquire Op = iota + 1
	// OpExtend sets the time to live of Value's share to TTL from now, if Value
	// holds it. It never creates. With Shared it makes an exclusive holder a
	// reader. Absent if Value holds another slot, or holds nothing and an
	// OpRepair would find room. Granted, Held, Foreign, Absent or
	// Misconfigured.
	OpExtend
	// OpRelease frees Value's share if Value holds one, whatever its slot,
	// removes Value from the queue, and raises the fence and the floor to Token
	// if they are lower. An OpAcquire of the same Value and Token that is still
	// in flight is then Stale; if the node knows that none is, of a Value that
	// waited, it may leave the fence. A Token that would be Ahead does not raise
	// it. With Keep the share is not freed, but lives on for Keep at most.
	// Granted, Held, Foreign or Absent; with Once also Stale or Ahead.
	OpRelease
	// OpInspect changes nothing. Held, Foreign or Absent.
	OpInspect
	// OpRepair gives the share to Value on a node that missed the acquisition, after a
	// quorum of nodes has granted or extended it. No holder may conflict. If Value holds
	// the share, it is Granted, and nothing is changed. If Value holds another slot, it is
	// moved; if its own slot is taken, it keeps the other one until that expires. If
	// Value holds nothing, the repair is Stale after Until, if Value was released here
	// with a NoRepair that is not over, and if Token is below that of an OpBreak, for the
	// break's Retention: the break may not have reached the nodes yet that Value has. The
	// fence does not matter: contenders raise it, too. It is raised to Token and never
	// lowered; so is the floor, unless for Shared. Window and queue do not matter.
	// Granted, Held, Foreign, Stale, Quarantined or Misconfigured.
	OpRepair
	// OpYield frees Value's share if Value holds one and a waiter with a lower
	// Ticket is queued that does not fit beside it and the other holders, and
	// queues Value in the same step. Granted means that Value has kept the
	// name, and that the fence was raised to Token. Otherwise the reply is as
	// to an OpRelease, and Rank is the place of Value in the queue. Once is
	// always implied. A node without a queue returns an error.
	OpYield
	// OpMark is what a MarkRequest asks, in errors.
	OpMark
	// OpBreak takes the name away from all its holders and raises the fence and the
	// floor to Token, so that the next holder has a higher token. It is Stale if the
	// fence is above Token, or equal to it and the name is held: the name was then taken
	// after the break was decided. A holder with a lower Token is not repaired for Retention,
	// whether the name was held or free. A key that is no plain lock stays unless
	// Foreign is set. Waiters keep their places. Quarantine does not matter; of the
	// marker only the membership does. Repeating it is harmless. Granted if the name is
	// now free; else Foreign, Stale, Ahead or Misconfigured, and nothing was changed.
	OpBreak
	// OpComplete is the first Op of a RecordsRequest; the ones before are for locks. It
	// records that the Occurrence of the name is completed, and keeps
	// the record for Retention. Repeating it is harmless. Granted.
	OpComplete
	// OpCheck asks whether the Occurrence of the name is completed. Granted if
	// there is a record, else Absent. It changes no record, but the node's
	// memory of the name begins with the first OpCheck, OpComplete or
	// OpRecords, and lasts for Retention from the last. With a Guard the memory
	// begins anew on another server, or after a restart: the node may then
	// lack records. Those that it has stay.
	OpCheck
	// OpRecords reads up to MaxRecords records of the name, the one that is
	// forgotten last first, without the first Skip of them. Granted.
	OpRecords
	// OpAdopt stores records that other nodes have. Granted, or Stale if the
	// memory did not begin at Begun: the node has lost it since.
	OpAdopt
)

// String returns the operation's name.
func (o Op) String() string {
	if o == 0 || int(o) >= len(opTexts) {
		return "unknown operation"
	}
	return opTexts[o]
}

var opTexts = [...]string{
	OpAcquire:  "acquire",
	OpExtend:   "extend",
	OpRelease:  "release",
	OpInspect:  "inspect",
	OpRepair:   "repair",
	OpYield:    "yield",
	OpMark:     "mark",
	OpBreak:    "break",
	OpComplete: "complete",
	OpCheck:    "check completed",
	OpRecords:  "read records",
	OpAdopt:    "copy records",
}

// A Request is what a client asks of a Node about a lock.
type Request struct {
	Op Op

	// Share is what is asked for, extended, released or repaired. An OpInspect
	// and an OpBreak are about all holders.
	Share

	// Name is the key of the lock, prefix included.
	Name string

	// Value is the attempt's value. It is unique, and compared as a whole.
	Value string

	// TTL is how long the lock lives from the moment at which the node executes
	// an OpAcquire, OpExtend or OpRepair.
	TTL time.Duration

	Fencing

	// Until is the time, on the node's own clock, after which an OpRepair is too late,
	// and Stale: its sender may have released the lock since. Of an OpAcquire it is when
	// its caller stops to wait, as far as is known: a node need not heed it. Zero for no
	// limit.
	Until time.Time

	Parting

	Waiting

	// Guard is what a Guarded node compares its marker with before it grants an
	// OpAcquire or OpRepair. For an OpExtend or OpBreak it compares the
	// membership only, and an OpExtend must also be within the marker's MaxTTL.
	// With nil the node ignores its marker. Only a Mark writes one.
	Guard *Guard

	// Epoch is the highest epoch that the client knows of this node's marker.
	// If the marker's is lower, the server was replaced and came back as it was:
	// it has to be marked again.
	Epoch uint64

	// Foreign makes an OpBreak remove a key that is no plain lock.
	Foreign bool
}

// Fencing is what a Request says of tokens and clocks.
type Fencing struct {
	// Token is the fencing token that is proposed (OpAcquire) or held. With 0
	// the node neither checks nor changes its fence.
	Token Token

	// Reserve, if it is not 0, makes an OpExtend of an exclusive holder also
	// reserve tokens: Token becomes the holder's, and the fence is raised to
	// Token+Reserve. The node judges Token as for an OpAcquire, and Token+Reserve
	// must not be Ahead. If it refuses that, it extends all the same, and the
	// reply is not Confirmed. A copy of the request is Confirmed too. A node that
	// may not grant, because of its marker, reserves nothing.
	Reserve Token

	// Window is how far Token may differ from the node's clock, in either
	// direction.
	Window time.Duration

	// Clock is what the clocks of the other nodes show, for a node that has none: Token
	// is compared with it, and Until. A node with a clock ignores it. If it is zero,
	// such a node takes the clock of the process.
	Clock time.Time

	// Retention is how long the node remembers the fence after its last use.
	Retention time.Duration
}

// Parting is how an OpRelease ends a lease.
type Parting struct {
	// Keep, if it is not 0, is how long an OpRelease lets the share live on. It
	// never prolongs it.
	Keep time.Duration

	// NoRepair, if it is not 0, is how long after an OpRelease an OpRepair of
	// Value is Stale, and an OpAcquire of it does not join the queue: one may be
	// in flight, or a copy of one.
	NoRepair time.Duration

	// Once makes an OpRelease harmless that is executed a second time, after
	// Value has taken the name again. If Value holds the name and the fence is
	// not below Token, which is above every token that Value asked with before,
	// the release is Stale. If Token could not be the fence, it is Ahead.
	// Without a Token it has no effect.
	Once bool
}

// Waiting is the place in the queue that a Request asks for.
type Waiting struct {
	// Wait asks a node with a queue to queue Value when an OpAcquire is refused
	// with Held, Foreign or Reserved, or to renew its place. The place of the
	// head lapses if it is not renewed for WaiterLease (unless places live with their
	// processes), or for TurnLease after it was notified. Places behind it may lapse
	// with it, if their waiters were called (WakeCall) and did not ask.
	Wait bool

	// Ticket is the waiter's time of arrival in microseconds, the same on every
	// node. The queue is ordered by Ticket, then by Kind, then by Value, which
	// begins with a hexadecimal digit. A free name is granted in this order: a
	// request must fit beside the holders and beside all waiters before it. So
	// readers at the head are granted together, and a reader behind a writer
	// waits.
	Ticket int64
}
