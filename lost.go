package redlatch

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/errs"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// LostError says which lock was lost, and why. It is an ErrLost.
type LostError struct {
	Name  string
	Token Token
	// Since is when the lease was acquired or attached, on this machine's
	// clock; zero if there was no lease.
	Since time.Time
	// Held is how long the lease was held.
	Held time.Duration
	// Err is a *QuorumError if the nodes report that the lock is no longer
	// ours, ErrMaxHold if it was held for its MaxHold, and nil if it was not
	// extended in time.
	Err error
	// Reason says in words why the lock was lost.
	Reason string
	// Last is the error of the last extension, if it failed and Err is nil: a
	// *QuorumError that says what each node answered. errors.Is ignores it,
	// because it does not prove that the nodes gave the lock to another client.
	Last error
}

func (e *LostError) Error() string {
	s := fmt.Sprintf("redlatch: %q is lost", e.Name)
	if !e.Since.IsZero() {
		s += fmt.Sprintf(", held since %s (%v)", clockText(e.Since, e.Held), roughly(e.Held))
	}
	return s + ": " + e.Reason
}

// reason says in words why a lock was lost. kept says that the client extended
// it.
func (e *LostError) reason(kept bool) string {
	text := func(err error) string { return strings.TrimPrefix(err.Error(), "redlatch: ") }
	switch {
	case errors.Is(e.Err, ErrMaxHold):
		return "it was held for its MaxHold"
	case e.Err != nil:
		return "the nodes say that it is no longer ours: " + text(e.Err)
	case e.Last != nil:
		return "it could not be extended in time: " + text(e.Last)
	case kept:
		return "it could not be extended in time: no extension was answered before the deadline; this process, or the machine, may have been paused"
	}
	return "it was not extended in time"
}

// Unwrap returns ErrLost and Err.
func (e *LostError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrLost, errs.ErrNotExtended}
	}
	return []error{ErrLost, e.Err}
}

// lostWithout returns the error for the lock of a handle that is no lease here.
func lostWithout(name string, token Token, why error) *LostError {
	e := &LostError{Name: name, Token: token, Err: why}
	e.Reason = e.reason(false)
	return e
}

// lost returns the error for a lost lock. why is what the nodes answered,
// ErrMaxHold, or nil if the lock was not extended in time. The mutex is held.
func (l *Lease) lost(why error) *LostError {
	clock, core := l.c.opts.clock, l.claim.Core()
	e := &LostError{Name: l.name, Token: core.Token(), Err: why}
	e.Held = clock.Uptime() - core.Acquired()
	e.Since = clock.Now().Add(-e.Held)
	if why == nil {
		e.Last = l.failed
	}
	e.Reason = e.reason(l.kept)
	return e
}

// isNews reports whether the end of the lease has to be reported. The mutex is
// held.
func (l *Lease) isNews() bool {
	return l.observer() != nil || errors.Is(l.cause, ErrLost)
}

// tellEnd reports that the lease has ended. It runs without the mutex, because
// a logger or an observer may be slow.
func (l *Lease) tellEnd() {
	l.claim.Lock()
	cause, held, token := l.cause, l.c.opts.clock.Uptime()-l.claim.Core().Acquired(), l.claim.Core().Token()
	l.claim.Unlock()
	if errors.Is(cause, ErrLost) {
		l.c.opts.Logger.Warn("redlatch: lock is lost", "name", l.name, "token", uint64(token), "held", held, "cause", cause)
	}
	l.observeEnd(observe.LeaseEnd{Name: l.name, Token: token, Held: held, Cause: cause})
}

// said is what a node did about an extension, as far as the log distinguishes
// it.
type said uint8

const (
	nothingYet said = iota // the round ended before it answered
	noAnswer
	didExtend
	didRefuse
)

func saidBy(r node.Result) said {
	switch {
	case r.Err == runner.ErrPending:
		return nothingYet
	case r.Err != nil:
		return noAnswer
	case r.Reply.Status == node.Granted:
		return didExtend
	}
	return didRefuse
}

// warn logs that a lease could not be extended: the first time, and when a node
// answers differently from the last time. It does not log each try, because
// there are many in one TTL.
func (l *Lease) warn(err *QuorumError) {
	l.claim.Lock()
	changed := l.said == nil
	if changed {
		l.said = make([]said, len(err.Nodes))
	}
	for i, r := range err.Nodes {
		if a := saidBy(r); a != nothingYet {
			changed = changed || l.said[i] != nothingYet && l.said[i] != a
			l.said[i] = a
		}
	}
	left := l.claim.Remaining()
	l.claim.Unlock()
	if changed && l.kept {
		l.c.opts.Logger.Warn("redlatch: lock could not be extended, trying again", "name", l.name, "left", left, "err", err)
	}
}

// relieve logs that a lease was extended after extensions had failed.
func (l *Lease) relieve() {
	l.claim.Lock()
	warned, left := l.said != nil, l.claim.Remaining()
	l.said = nil
	l.claim.Unlock()
	if warned && l.kept {
		l.c.opts.Logger.Info("redlatch: lock is extended again", "name", l.name, "left", left)
	}
}
