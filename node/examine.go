package node

import (
	"context"
	"time"
)

// Examiner is implemented by a Node that can look for what endangers the locks
// on it. Looking leaves every lock as it is; what it tries, it tries under the
// name that it is given, and undoes.
type Examiner interface {
	Node
	// Examine returns what is worth knowing. A node that cannot be reached
	// returns an error.
	Examine(ctx context.Context, exam Exam) ([]Finding, error)
}

// Exam is what an Examiner must know.
type Exam struct {
	// Name is a key that nobody uses, for trying what a lock does.
	Name string
	// Guarded says that nodes that may have forgotten locks are quarantined.
	Guarded bool
	// Window is how far a token may be from a node's clock.
	Window time.Duration
	// Replicas is how many replicas of a node must be online, with a lag of
	// ReplicaLag at the most.
	Replicas   int
	ReplicaLag time.Duration
}

// Severity says how much a Finding matters.
type Severity uint8

// How much a Finding can matter.
const (
	// Fine: as it should be.
	Fine Severity = iota
	// Advice: could be better.
	Advice
	// Warning: will hurt when something else goes wrong.
	Warning
	// Danger: two may hold one lock, or nobody can have it.
	Danger
)

// String returns the severity in one word.
func (s Severity) String() string {
	return [...]string{"fine", "advice", "warning", "danger"}[min(s, Danger)]
}

// A Finding is one thing that an examination found.
type Finding struct {
	Severity Severity
	// Check is what was looked at, in one word: "role", "eviction", "clock".
	Check string
	// Node is whom it is about; empty for the list as a whole.
	Node string
	// Found is what is so.
	Found string
	// Means is what follows from it; may be empty where all is fine.
	Means string
	// Do is what to do about it; empty where there is nothing to do.
	Do string
}
