package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Observer is told when a lock is asked for and how that ended. It runs on the
// caller's goroutine and must not block. Implement WaitObserver, RoundObserver
// or LeaseObserver besides to be told more. In every call, Name is the name of
// the lock as the caller gave it, without the client's Prefix.
type Observer interface {
	// LockStart is called before the first round of Lock or TryLock. The
	// context that it returns is used from there on.
	LockStart(ctx context.Context, start LockStart) context.Context
	// LockEnd is called when Lock or TryLock returns.
	LockEnd(ctx context.Context, end LockEnd)
}

// LockStart is what an Observer is told when a lock is asked for.
type LockStart struct {
	Name  string
	TTL   time.Duration
	Nodes int
}

// LockEnd is what an Observer is told when asking for a lock has ended.
type LockEnd struct {
	Name   string
	Token  Token // 0 if Err is set
	Rounds int
	Waited time.Duration
	Err    error
}

// WaitObserver is an Observer that is notified while a lock is waited for.
type WaitObserver interface {
	Observer
	// Waiting is called after each round that did not get the lock, if there is
	// to be another.
	Waiting(ctx context.Context, w Waiting)
}

// Waiting is what a WaitObserver is notified of.
type Waiting struct {
	Name string
	// Place is our place in the nodes' queue: 1 for the next one to have the
	// lock, 0 if a quorum has not queued us. Far behind it is some seconds old,
	// since those who wait there seldom ask.
	Place  int
	Waited time.Duration
	// Err is what we wait for: a *HeldError, or a *QuorumError if too few nodes
	// answer.
	Err error
}

// RoundObserver is an Observer that is told of every round.
type RoundObserver interface {
	Observer
	RoundEnd(ctx context.Context, end RoundEnd)
}

// RoundEnd is what a RoundObserver is told when a round is settled.
type RoundEnd struct {
	Op      node.Op
	Name    string
	Won     bool // a quorum did what was asked; of a release, is without the key
	Granted int
	Refused int
	Failed  int // did not answer, or not yet
	Elapsed time.Duration
	// Err is a *QuorumError that says what each node did; nil if Won.
	Err error
}

// LeaseObserver is an Observer that is told when a lease ends.
type LeaseObserver interface {
	Observer
	LeaseEnd(end LeaseEnd)
}

// LeaseEnd is what a LeaseObserver is told when a lease ends.
type LeaseEnd struct {
	Name  string
	Token Token
	Held  time.Duration
	Cause error // wraps ErrReleased, ErrLost, ErrDetached or ErrClosed
}
