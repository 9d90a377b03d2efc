package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// EventKind says what happened.
type EventKind uint8

// What can happen to a claim.
const (
	// Begin asks for the lock.
	Begin EventKind = iota + 1
	// Resume continues with the successor of a claim.
	Resume
	// Answer is a node's reply to a request, or the failure to get one.
	Answer
	// Wake is a notification from a node.
	Wake
	// Timer is sent when the time that Claim.Timer returned has come.
	Timer
	// Configured answers Adopt. Config has the parameters that the client has
	// adopted; it is nil if nothing has changed.
	Configured
	// Rejected answers Adopt: the parameters that the client has adopted do not
	// allow what the caller asked for.
	Rejected
	// Marked answers AwaitMark: Changed says that a node was marked.
	Marked
	// Cancel ends the attempt: the caller has gone, or the client is closing.
	Cancel
	// Attach resumes a claim that another process acquired.
	Attach
	// Extend asks for an extension now.
	Extend
	// Downgrade makes a writer a reader, by an extension.
	Downgrade
	// Release ends a lease, and frees the lock on the nodes.
	Release
	// Detach ends a lease, and leaves the lock on the nodes.
	Detach
	// LocalWaiters says how many callers of the same process wait for the lock.
	LocalWaiters
	// Pass ends a lease, and makes Waiter the next holder, if Claim.MayPass.
	// Waiters others wait behind it. The runner then calls Claim.Inherit.
	Pass
	// Bar: the lease is not passed on any more, since another process may know its value.
	Bar
)

// Fault says why there is no reply.
type Fault uint8

// The faults of a request.
const (
	// NoFault: there is a reply.
	NoFault Fault = iota
	// Unsent: the request was not executed, and will not be.
	Unsent
	// Broken: the connection broke. The request may have been executed, or may
	// be executed later.
	Broken
	// TimedOut: the node did not answer in time. The request may have been
	// executed, or may be executed later.
	TimedOut
	// TimedOutUnsent: the time limit passed before the request was sent.
	TimedOutUnsent
	// Contended: nothing was done, because others changed the name at each try.
	Contended
	// Invalid: the node is not usable with this configuration, such as a server
	// that is listed twice. Nothing was sent.
	Invalid
)

// sent reports that the request may have been executed, or may be executed
// later, although there is no reply.
func (f Fault) sent() bool { return f == Broken || f == TimedOut }

// Event is one thing that happened. Fields that a kind does not name are unset.
type Event struct {
	Kind EventKind
	Node int // Answer, Wake

	// Answer: the request that it answers, as in the Send.
	Seq   uint32
	Op    node.Op
	Once  bool
	Token node.Token
	Fault Fault
	Reply node.Reply
	// Again says that the request was sent again: the node may have executed
	// later ones before it.
	Again bool
	// Misfit says how the node's marker differs, if the node is Misconfigured.
	Misfit Misfit

	Wake node.Wake // Wake

	Config *Config // Configured
	// Changed: a node was marked (Marked), or tokens are to be asked for even if
	// some are left (LocalWaiters).
	Changed bool

	Waiters int    // LocalWaiters, Pass
	Waiter  Waiter // Pass
}

// granted reports that the answer is a grant.
func (e *Event) granted() bool { return e.Fault == NoFault && e.Reply.Status == node.Granted }

// queued reports that the answer shows a place in the node's queue.
func (e *Event) queued() bool { return e.Fault == NoFault && e.Reply.Rank > 0 }

// View is what a claim may ask about its client and its nodes. It only answers:
// no question changes anything.
type View interface {
	// Now is the client's monotonic clock.
	Now() Instant
	// Time is the client's wall clock.
	Time() time.Time
	// Offset is how far the nodes' clocks are ahead of it, by their median.
	Offset() time.Duration
	// ClockKnown reports whether any node has shown its clock, or a quorum has none.
	ClockKnown() bool
	// NoClocks reports whether a quorum of nodes has no clock, and none has shown
	// one. Then no token is ahead of any.
	NoClocks() bool
	// Token returns the token to propose: at least floor, near the nodes' time,
	// and above what the client has sent before.
	Token(floor node.Token) node.Token
	// Suspects returns the nodes that have stopped answering.
	Suspects() Set
	// MayProbe reports whether a suspect node may be sent one more request.
	MayProbe(i int) bool
	// InOrder returns the nodes that execute a request which is sent now after
	// all that the claim has sent before, except those that are answered with
	// Again or with a fault.
	InOrder() Set
	// InQuarantine reports whether a node is known to grant nothing before its
	// quarantine ends. One that has to be marked first is not in it.
	InQuarantine(i int) bool
	// Epoch is the highest epoch that is known of a node's marker, from its own
	// answers and from what other nodes have noted.
	Epoch(i int) uint64
	// Missed counts how often notifications may have been lost.
	Missed() uint32
	// Random returns a random duration from 0 up to, but not including, d.
	Random(d time.Duration) time.Duration
}
