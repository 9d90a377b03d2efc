package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// The causes of a lost lock, as metrics and logs name them.
const (
	causeTaken       = "taken"        // the nodes say that it is no longer ours
	causeNotExtended = "not_extended" // too few nodes confirmed an extension in time
	causeStalled     = "stalled"      // this process, or the machine, was stopped
	causeMaxHold     = "max_hold"     // --max-hold is over
)

// lostOutcome is the outcome of a run whose lock was lost.
func lostOutcome(cause string, err error) *outcome {
	return &outcome{code: exitLost, event: "lost", cause: cause, err: err}
}

// causeOf is the cause of a lease that is lost.
func causeOf(err error) string {
	var lost *redlatch.LostError
	switch {
	case errors.Is(err, redlatch.ErrMaxHold):
		return causeMaxHold
	case !errors.As(err, &lost):
		return causeTaken
	case lost.Err != nil:
		return causeTaken
	case lost.Last != nil:
		return causeNotExtended
	}
	return causeStalled
}

// lostCause is why a lease ended, as a part of a sentence that names the lock.
func lostCause(err error) string {
	var nodes *redlatch.QuorumError
	if errors.As(err, &nodes) {
		return message(nodes)
	}
	var refused *redlatch.ConfigError
	if errors.As(err, &refused) {
		return message(refused)
	}
	var lost *redlatch.LostError
	if errors.As(err, &lost) {
		return message(errors.New(lost.Reason()))
	}
	return message(err)
}

// heldSince names a lock that is lost, and says since when it was held.
func heldSince(name string, acquired time.Time) string {
	layout := time.TimeOnly
	held := time.Since(acquired)
	if held >= 24*time.Hour {
		layout = time.DateTime
	}
	return fmt.Sprintf("%q, held since %s (%v),", name, acquired.Format(layout), held.Round(time.Second))
}

// extensions is an Observer that keeps the result of the last extension, for
// the message that says why a lock was lost. While we wait it keeps our place
// in the queue.
type extensions struct {
	places
	mu     sync.Mutex
	failed error // nil if the last one was confirmed
}

func (e *extensions) RoundEnd(_ context.Context, end observe.RoundEnd) {
	if end.Op != node.OpExtend {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = end.Err
}

// failure describes the last extension if it failed, and is empty otherwise.
func (e *extensions) failure() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failed == nil {
		return ""
	}
	return message(e.failed)
}
