package redlatch

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// LostError says which lock was lost, and why. It is an ErrLost.
type LostError struct {
	Name  string
	Token Token
	// Since is when the lease was acquired, or attached, on this machine's
	// clock; zero if there was none.
	Since time.Time
	// Held is for how long there was a lease.
	Held time.Duration
	// Err is a *QuorumError if the nodes say that the lock is no longer ours,
	// ErrMaxHold if it was held for as long as it may be, and nil if it was not
	// extended in time.
	Err error
	// Last is how the last extension failed, if it did and Err is nil: a
	// *QuorumError that says what became of each node. errors.Is does not see
	// it: it is not certain that the nodes gave the lock to another.
	Last error

	kept bool // it was to be extended by the client
}

func (e *LostError) Error() string {
	s := fmt.Sprintf("redlatch: %q is lost", e.Name)
	if !e.Since.IsZero() {
		s += fmt.Sprintf(", held since %s (%v)", clockText(e.Since, e.Held), roughly(e.Held))
	}
	return s + ": " + e.Reason()
}

// Reason says in words why the lock was lost.
func (e *LostError) Reason() string {
	text := func(err error) string { return strings.TrimPrefix(err.Error(), "redlatch: ") }
	switch {
	case errors.Is(e.Err, ErrMaxHold):
		return "it was held for its MaxHold"
	case e.Err != nil:
		return "the nodes say that it is no longer ours: " + text(e.Err)
	case e.Last != nil:
		return "it could not be extended in time: " + text(e.Last)
	case e.kept:
		return "it could not be extended in time: no extension was answered before the deadline; this process, or the machine, may have stood still"
	}
	return "it was not extended in time"
}

// Is reports that every LostError is an ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

// lost says that the lock is lost, and why: what the nodes said, ErrMaxHold, or
// nil if it was not extended in time. The mutex is held.
func (cl *claim) lost(why error) *LostError {
	e := &LostError{Name: cl.name, Token: cl.core.Token(), Err: why}
	if l := cl.lease; l != nil {
		e.Held = cl.c.clock.Uptime() - cl.core.Acquired()
		e.Since = cl.c.clock.Now().Add(-e.Held)
		e.kept = !l.opts.NoKeepAlive
		if why == nil {
			e.Last = l.failed
		}
	}
	return e
}

// isNews reports whether anybody is to be notified of the end. The mutex is held.
func (l *Lease) isNews() bool {
	_, observed := l.c.opts.Observer.(LeaseObserver)
	return observed || errors.Is(l.cause, ErrLost)
}

// tellEnd reports that the lease has ended. A logger or an observer may take its
// time.
func (l *Lease) tellEnd() {
	l.mu.Lock()
	cause, held, token := l.cause, l.c.clock.Uptime()-l.core.Acquired(), l.core.Token()
	l.mu.Unlock()
	if errors.Is(cause, ErrLost) {
		l.c.log.Warn("redlatch: lock is lost", "name", l.name, "token", uint64(token), "held", held, "cause", cause)
	}
	if o, ok := l.c.opts.Observer.(LeaseObserver); ok {
		o.LeaseEnd(LeaseEnd{Name: l.name, Token: token, Held: held, Cause: cause})
	}
}

// said is what a node did about an extension, as far as the log goes by it.
type said uint8

const (
	nothingYet said = iota // it was not waited for
	noAnswer
	didExtend
	didRefuse
)

func saidBy(r NodeResult) said {
	switch {
	case r.Err == errPending:
		return nothingYet
	case r.Err != nil:
		return noAnswer
	case r.Reply.Status == node.Granted:
		return didExtend
	}
	return didRefuse
}

// warn logs that a lease could not be extended: the first time, and when a node
// did something else than the last time. It is tried again many times a TTL.
func (l *Lease) warn(err *QuorumError) {
	l.mu.Lock()
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
	left := l.remaining()
	l.mu.Unlock()
	if changed && !l.opts.NoKeepAlive {
		l.c.log.Warn("redlatch: lock could not be extended, trying again", "name", l.name, "left", left, "err", err)
	}
}

// relieve logs that a lease was extended after it could not be.
func (l *Lease) relieve() {
	l.mu.Lock()
	warned, left := l.said != nil, l.remaining()
	l.said = nil
	l.mu.Unlock()
	if warned && !l.opts.NoKeepAlive {
		l.c.log.Info("redlatch: lock is extended again", "name", l.name, "left", left)
	}
}
