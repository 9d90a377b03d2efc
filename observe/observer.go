// Package observe notifies programs of what a client does, for logs, metrics
// and traces: Options.Observer of package redlatch takes an Observer.
//
// The modules adapters/prom and adapters/otel have observers for Prometheus and
// OpenTelemetry.
package observe

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Observer is notified when a lock is requested and when that request has
// ended. It runs on the caller's goroutine and must not block. Implement
// WaitObserver, RoundObserver, LeaseObserver or NodeObserver as well to be
// notified of more. In every call, Name is the name of the lock as the caller
// passed it, without the client's Prefix. NamePattern makes a label of it,
// Outcome one of an error. Join makes one observer of several.
type Observer interface {
	// LockStart is called before the first round of Lock or TryLock. The
	// context that it returns is used from then on.
	LockStart(ctx context.Context, start LockStart) context.Context
	// LockEnd is called when Lock or TryLock returns.
	LockEnd(ctx context.Context, end LockEnd)
}

// LockStart describes the start of a request for a lock.
type LockStart struct {
	Name  string
	TTL   time.Duration
	Nodes int
}

// LockEnd describes the end of a request for a lock.
type LockEnd struct {
	Name   string
	Token  node.Token // 0 if Err is set
	Rounds int
	Waited time.Duration
	Err    error
}

// WaitObserver is an Observer that is also notified while a caller waits for a
// lock.
type WaitObserver interface {
	Observer
	// Waiting is called after each round that did not get the lock, if another
	// round follows.
	Waiting(ctx context.Context, w Waiting)
}

// Waiting describes a wait after a round.
type Waiting struct {
	Name string
	// Place is our place in the node queue: 1 for the next holder, 0 if no
	// quorum has queued us. Far behind it may be some seconds old, because
	// waiters there seldom ask.
	Place  int
	Waited time.Duration
	// Err is what the caller waits for: a *HeldError, or a *QuorumError if too
	// few nodes answer.
	Err error
}

// RoundObserver is an Observer that is also notified of every round.
type RoundObserver interface {
	Observer
	RoundEnd(ctx context.Context, end RoundEnd)
}

// RoundEnd describes the end of a round.
type RoundEnd struct {
	Op      node.Op
	Name    string
	Won     bool // a quorum granted; for a release, a quorum no longer has the key
	Granted int
	Refused int
	Failed  int // did not answer, or not yet
	Elapsed time.Duration
	// Nodes is what each node has answered when the round ended. The Err of one
	// that had not answered yet says so; NodeObserver reports its answer.
	Nodes []Result
	// Err is a *QuorumError that says what each node did; nil if Won.
	Err error
}

// LeaseObserver is an Observer that is also notified when a lease begins and
// when it ends.
type LeaseObserver interface {
	Observer
	// LeaseStart is called before Lock, TryLock or Attach returns a lease. The
	// context that it returns is passed to LeaseEnd, and to RoundEnd for the
	// lease's extensions and release.
	LeaseStart(ctx context.Context, start LeaseStart) context.Context
	// LeaseEnd is called once for every LeaseStart, after it. It may be called a
	// moment after Release or Extend has returned. The context does not end with
	// that of the caller.
	LeaseEnd(ctx context.Context, end LeaseEnd)
}

// LeaseStart describes the start of a lease.
type LeaseStart struct {
	Name     string
	Token    node.Token
	TTL      time.Duration
	MaxHold  time.Duration // 0 for no limit
	Shared   bool
	Slots    int // 0 for a lock without slots
	Slot     int
	Attached bool // another process acquired it, or this one before a Detach
}

// LeaseEnd describes the end of a lease.
type LeaseEnd struct {
	Name  string
	Token node.Token
	Held  time.Duration
	Cause error // wraps ErrReleased, ErrLost, ErrDetached or ErrClosed
}

// NodeObserver is an Observer that is also notified of what each node does. Its
// methods run where the answer is read: one that blocks holds up other locks.
type NodeObserver interface {
	Observer
	// NodeEnd is called when a node has answered a request, also if that is
	// after the end of the round, or when its time limit has passed.
	NodeEnd(end NodeEnd)
	// NodeChange is called when a node stops answering or answers again, when it
	// is quarantined or back in service, and when its clock is found wrong or
	// right.
	NodeChange(health NodeHealth)
}

// NodeEnd describes the end of a request to one node.
type NodeEnd struct {
	Node    string
	Op      node.Op
	Status  node.Status // the answer; 0 if Err is set
	Elapsed time.Duration
	Err     error
}

// NodeHealth is what a client knows about one of its nodes, from the requests
// that it has sent. Of a node that was not asked for long it may be out of date.
type NodeHealth struct {
	Node string
	// Up says that the node answered the last request. It is false if it was
	// never reached.
	Up bool
	// Quarantined says that the node grants no locks because it may have
	// forgotten some; Reason says why, and Left for how long.
	Quarantined bool
	Reason      string
	Left        time.Duration
	// Clock is how far the node's clock is ahead of ours, if ClockKnown.
	// WrongClock says that it is so far from the other nodes' that the node
	// will refuse tokens.
	Clock      time.Duration
	ClockKnown bool
	WrongClock bool
	// Timers is how many timers this client has left on the node, for callers that
	// were refused: on a store without a clock, such as etcd.
	Timers int64
}
