package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
)

// onLost is a pflag.Value: what becomes of CMD when its lock is being lost.
type onLost string

const (
	onLostTerm   onLost = "term"
	onLostKill   onLost = "kill"
	onLostIgnore onLost = "ignore"
)

func (o *onLost) String() string { return string(*o) }
func (o *onLost) Type() string   { return "term|kill|ignore" }
func (o *onLost) Set(s string) error {
	switch v := onLost(s); v {
	case onLostTerm, onLostKill, onLostIgnore:
		*o = v
		return nil
	}
	return errors.New("must be term, kill or ignore")
}

// plan says when CMD is ended if its lock is not extended. Pure arithmetic on
// the time that the lease has left:
//
//	acquired ──── extension, tried again and again ──── TERM ──── KILL ── deadline
//	                                                     │←─── grace ──────→│
//	                                                                │margin→│
type plan struct {
	mode   onLost
	grace  time.Duration // TERM is sent with this much left
	margin time.Duration // KILL is sent with this much left
	short  time.Duration // what CMD gets between TERM and KILL once it is too late
}

func newPlan(grace time.Duration, mode onLost) plan {
	return plan{mode: mode, grace: grace, margin: grace / 4, short: min(grace/4, 100*time.Millisecond)}
}

// step is what a plan asks for.
type step int

const (
	stepNone step = iota
	stepTerm      // ask CMD to end
	stepKill      // end it
)

// due returns what to do about a lease with this much left. taken says that
// the nodes ended it before its time.
func (p plan) due(left time.Duration, taken bool) step {
	switch {
	case p.mode == onLostIgnore:
		return stepNone
	case taken && p.mode == onLostTerm:
		return stepTerm
	case left <= p.margin:
		return stepKill
	case left <= p.grace && p.mode == onLostTerm:
		return stepTerm
	}
	return stepNone
}

// next returns how long nothing is due if the lease is not extended.
func (p plan) next(left time.Duration) time.Duration {
	if p.mode == onLostTerm && left > p.grace {
		return left - p.grace
	}
	return max(left-p.margin, 0)
}

// lostOutcome is the outcome of a run whose lock was lost.
func lostOutcome(err error) *outcome {
	return &outcome{code: exitLost, event: "lost", err: err}
}

// lostCause is why the nodes, or the deadline, ended a lease, without what the
// line that it becomes part of says already.
func lostCause(err error) string {
	var nodes *redlatch.QuorumError
	if errors.As(err, &nodes) {
		return message(nodes)
	}
	var lost *redlatch.LostError
	if errors.As(err, &lost) {
		return message(errors.New(lost.Reason()))
	}
	return message(err)
}

// heldSince names a lock of ours that is lost, and since when it was held.
func heldSince(name string, acquired time.Time) string {
	layout := time.TimeOnly
	held := time.Since(acquired)
	if held >= 24*time.Hour {
		layout = time.DateTime
	}
	return fmt.Sprintf("%q, held since %s (%v),", name, acquired.Format(layout), held.Round(time.Second))
}

// extensions is an Observer that remembers how the last extension went, for
// the line that says why a lock was lost; and, before that, our place in line.
type extensions struct {
	places
	mu     sync.Mutex
	failed error // nil if the last one was confirmed
}

func (e *extensions) RoundEnd(_ context.Context, end redlatch.RoundEnd) {
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
