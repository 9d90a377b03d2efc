package redlatch

import (
	"context"
	"time"
)

// Observer is told when a lock is asked for and how that ended. It runs on the
// caller's goroutine and must not block. Implement RoundObserver or
// LeaseObserver besides to be told more. In every call, Name is the name of the
// lock as the caller gave it, without the client's Prefix.
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

// RoundObserver is an Observer that is told of every round.
type RoundObserver interface {
	Observer
	RoundEnd(ctx context.Context, end RoundEnd)
}

// RoundEnd is what a RoundObserver is told when a round is settled.
type RoundEnd struct {
	Op      Op
	Name    string
	Won     bool // a quorum did what was asked; of a release, is without the key
	Granted int
	Refused int
	Failed  int // did not answer, or not yet
	Elapsed time.Duration
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
