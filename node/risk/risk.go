// Package risk has what a node's examination finds: the findings of redlatch
// doctor. A store that can look for risks implements Examiner.
package risk

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Examiner is implemented by a Node that can look for risks to the locks on it.
// An examination changes no lock. What it tries, it tries under the name that
// it is given, and undoes.
type Examiner interface {
	node.Node
	// Examine returns its findings. It returns an error if the node cannot be
	// reached.
	Examine(ctx context.Context, exam Exam) ([]Finding, error)
}

// Exam are the parameters of an examination.
type Exam struct {
	// Name is a key that nobody uses, for trying the operations of a lock.
	Name string
	// Guarded says that the restart guard is on: nodes that may have forgotten
	// locks are quarantined.
	Guarded bool
	// Window is how far a token may differ from a node's clock.
	Window time.Duration
	// Replicas is how many replicas of a node must be online, with a lag of
	// ReplicaLag at the most.
	Replicas   int
	ReplicaLag time.Duration
}

// Severity says how much a Finding matters.
type Severity uint8

// The severities of a Finding.
const (
	// Fine: as it should be.
	Fine Severity = iota
	// Advice: could be better.
	Advice
	// Warning: harmful if something else fails too.
	Warning
	// Danger: two clients may hold one lock, or nobody can acquire it.
	Danger
)

// String returns the severity in one word.
func (s Severity) String() string {
	return [...]string{"fine", "advice", "warning", "danger"}[min(s, Danger)]
}

// A Finding is one result of an examination.
type Finding struct {
	Severity Severity
	// Check is what was examined, in one word: "role", "eviction", "clock".
	Check string
	// Node is the node that it is about; empty if it is about the whole
	// membership.
	Node string
	// Found is the fact.
	Found string
	// Means is the consequence; may be empty if all is fine.
	Means string
	// Do is what to do about it; empty if there is nothing to do.
	Do string
}
