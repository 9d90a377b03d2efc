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

// lost says that the lease is lost, and why: what the nodes said, ErrMaxHold, or
// nil if it was not extended in time. In the last case the keeper's mutex is
// held.
func (l *Lease) lost(why error) *LostError {
	held := l.c.clock.Uptime() - l.acquired
	e := &LostError{Name: l.name, Token: l.req.Token, Since: l.c.clock.Now().Add(-held), Held: held,
		Err: why, kept: !l.opts.NoKeepAlive}
	if why == nil {
		e.Last = l.failed
	}
	return e
}

// failing notes that an extension failed, for the error of a loss.
func (k *keeper) failing(l *Lease, err *QuorumError) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.failed = err
	return err
}

// answer is what a node did about an extension, as far as the log goes by it.
type answer uint8

const (
	noAnswerYet answer = iota // it was not waited for
	noAnswer
	extended
	refused
)

func answerOf(r NodeResult) answer {
	switch {
	case r.Err == errPending:
		return noAnswerYet
	case r.Err != nil:
		return noAnswer
	case r.Reply.Status == node.Granted:
		return extended
	}
	return refused
}

// warn logs that a lease could not be extended: the first time, and when a node
// did something else than the last time. It is tried again many times a TTL.
func (k *keeper) warn(l *Lease, err error) {
	var said *QuorumError
	if !errors.As(err, &said) {
		return
	}
	k.mu.Lock()
	changed := l.said == nil
	if changed {
		l.said = make([]answer, len(said.Nodes))
	}
	for i, r := range said.Nodes {
		if a := answerOf(r); a != noAnswerYet {
			changed = changed || l.said[i] != noAnswerYet && l.said[i] != a
			l.said[i] = a
		}
	}
	k.mu.Unlock()
	if changed {
		k.c.log.Warn("redlatch: lock could not be extended, trying again", "name", l.name, "left", l.Remaining(), "err", err)
	}
}

// relieve logs that a lease was extended after it could not be.
func (k *keeper) relieve(l *Lease) {
	k.mu.Lock()
	warned := l.said != nil
	l.said = nil
	k.mu.Unlock()
	if warned {
		k.c.log.Info("redlatch: lock is extended again", "name", l.name, "left", l.Remaining())
	}
}
