package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Observer is notified when a lock is requested and when that request has
// ended. It runs on the caller's goroutine and must not block. Implement
// WaitObserver, RoundObserver or LeaseObserver as well to be notified of more.
// In every call, Name is the name of the lock as the caller passed it, without
// the client's Prefix.
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
	Token  Token // 0 if Err is set
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
	// Err is a *QuorumError that says what each node did; nil if Won.
	Err error
}

// LeaseObserver is an Observer that is also notified when a lease ends.
type LeaseObserver interface {
	Observer
	LeaseEnd(end LeaseEnd)
}

// LeaseEnd describes the end of a lease.
type LeaseEnd struct {
	Name  string
	Token Token
	Held  time.Duration
	Cause error // wraps ErrReleased, ErrLost, ErrDetached or ErrClosed
}
