package redlatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
	"github.com/redlatch/redlatch/observe"
)

var (
	// ErrConfig is returned when an option, a name or a membership is not
	// valid. The error is a *ConfigError that says which setting, and what it
	// allows.
	ErrConfig = node.ErrConfig

	// ErrChanging is returned, along with ErrConfig, when nodes grant nothing
	// because a membership change is in progress. It passes when the change is
	// finished; the error says how.
	ErrChanging = node.ErrChanging

	// ErrClosed is returned when the client was closed.
	ErrClosed = node.ErrClosed

	// ErrDeadlock is returned when the function that Do runs requests, on its
	// context, the lock that Do holds for it. Locks are not re-entrant, and a
	// reader cannot become a writer, so this wait could not end.
	ErrDeadlock = lockerrors.ErrDeadlock

	// ErrHeld is returned when another client holds the lock. The error is a
	// *HeldError that says which one, since when, and when it expires.
	ErrHeld = lockerrors.ErrHeld

	// ErrNoQuorum is returned when too few nodes answered in time. The error is
	// a *QuorumError that says what each node answered.
	ErrNoQuorum = lockerrors.ErrNoQuorum

	// ErrQuarantine is returned, along with ErrNoQuorum, when nodes do not
	// grant because they may have forgotten locks. It passes by itself once they are
	// marked, which a client does as soon as enough of them answer; the *QuorumError
	// says when, or what is missing.
	ErrQuarantine = lockerrors.ErrQuarantine

	// ErrNodeTimeout is the error of a node, in a *QuorumError, that did not
	// answer within its time limit.
	ErrNodeTimeout = runner.ErrNodeTimeout

	// ErrLost is returned when the lease ended without being released: it could
	// not be extended in time, or the nodes report that it is no longer ours.
	// The error is a *LostError that says which lock, since when, and why. This
	// and the errors below are also the causes of the end of a lease's context.
	ErrLost = lockerrors.ErrLost

	// ErrMaxHold is returned by Extend when the lease's deadline has reached
	// its MaxHold: the lease cannot be extended further, and is valid until its
	// deadline. Together with ErrLost, it is the cause with which such a lease
	// ends.
	ErrMaxHold = lockerrors.ErrMaxHold

	// ErrReleased is returned when the lease was released by its owner.
	ErrReleased = lockerrors.ErrReleased

	// ErrDetached is returned when the lease was handed on with Detach.
	ErrDetached = lockerrors.ErrDetached
)

// HeldError says who holds a lock.
type HeldError struct {
	Name string
	// Holders are the holders that the nodes name. The one that most nodes name
	// comes first. There is more than one while contenders split the nodes, and
	// if nodes name different ones of several that hold the lock together.
	Holders []Holder
	// Nodes has one entry for each node, in the order in which they were passed
	// to New: what it answered in the last round. Package admin leaves it out.
	Nodes []observe.Result
}

func (e *HeldError) Error() string {
	var who []string
	for _, h := range e.Holders {
		if first := e.Holders[0]; len(who) > 0 && first.Holders > 1 && first.Shared == h.Shared && first.Slots == h.Slots {
			continue // the first one's text counts it
		}
		who = append(who, h.String())
	}
	return fmt.Sprintf("redlatch: %q is held by %s", e.Name, strings.Join(who, "; and by "))
}

// Unwrap returns ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }

// QuorumError says what each node answered in a round that found no quorum.
type QuorumError struct {
	Op      node.Op
	Name    string        // empty for a list of all locks, and for marking nodes
	Need    int           // the quorum
	Elapsed time.Duration // how long the round took
	// Late is set when a quorum granted, but so late that no validity was left
	// of the TTL.
	Late bool
	// Nodes has one entry for each node, in the order in which they were passed
	// to New.
	Nodes []observe.Result
	// Quarantined is how many nodes are quarantined, and QuarantineLeft how long
	// it takes until enough of them are not. QuarantineLeft is 0 if something
	// else prevents a quorum too, which does not end by itself.
	Quarantined    int
	QuarantineLeft time.Duration

	text string // instead of the usual
}

func (e *QuorumError) Error() string {
	if e.text != "" {
		return e.text
	}
	said := make([]string, len(e.Nodes))
	for i, r := range e.Nodes {
		said[i] = r.String()
	}
	all := len(e.Nodes)
	why := fmt.Sprintf(" no quorum (%d of %d needed):", e.Need, all)
	switch gone := e.gone(); {
	case e.Late:
		why = fmt.Sprintf(" too late: no validity left after %v:", e.Elapsed.Round(time.Microsecond))
	case all == 1:
		why = "" // what the node said is all
	case gone > all-e.Need:
		why = fmt.Sprintf(" %d of %d nodes no longer have it:", gone, all)
	}
	what := fmt.Sprintf("%s %q", e.Op, e.Name)
	switch {
	case e.Op == node.OpInspect && e.Name == "":
		what = "list the locks"
	case e.Op == node.OpMark:
		what = "mark the nodes"
	}
	s := fmt.Sprintf("redlatch: cannot %s:%s %s", what, why, strings.Join(said, "; "))
	if e.hasNew(false) {
		s += "; " + waitOut
	}
	if e.hasNew(true) {
		s += "; a node that lost its marker is marked when a quorum confirms the membership, or by redlatch init"
	}
	return s
}

// gone is how many nodes say that the lock which is to be extended or released is
// not, or no longer, the caller's.
func (e *QuorumError) gone() (n int) {
	for _, r := range e.Nodes {
		if r.Err == nil && (e.Op == node.OpExtend || e.Op == node.OpRelease) && (r.Reply.Status == node.Absent || r.Reply.Status == node.Held) {
			n++
		}
	}
	return n
}

// waitOut says what to do about nodes that are new or have lost their data.
const waitOut = "wait until quarantine ends, as redlatch init does: a lock from before a loss of data may still be held; only brand-new servers may be trusted at once, with redlatch init --assume-fresh"

// hasNew reports whether a node is quarantined that is new, or has lost its data: one
// that needs a mark, or one that has it.
func (e *QuorumError) hasNew(needsMark bool) bool {
	return slices.ContainsFunc(e.Nodes, func(r observe.Result) bool {
		return r.Err == nil && r.Reply.Status == node.Quarantined && r.Reply.Reason == node.ReasonNew && r.Reply.NeedsMark == needsMark
	})
}

// countQuarantined sets Quarantined and QuarantineLeft from Nodes.
func (e *QuorumError) countQuarantined() {
	var ends []time.Duration
	for _, r := range e.Nodes {
		switch {
		case r.Err != nil || r.Reply.Status == node.Misconfigured:
		case r.Reply.Status == node.Quarantined:
			if !r.Reply.NeedsMark {
				e.Quarantined++
				ends = append(ends, r.Reply.Left)
			}
		default:
			ends = append(ends, 0)
		}
	}
	e.QuarantineLeft = protocol.QuorumAfter(ends, len(e.Nodes))
}

// Unwrap returns ErrNoQuorum, ErrQuarantine if a node is quarantined, and the
// nodes' own errors, so that errors.As finds a driver's.
func (e *QuorumError) Unwrap() []error {
	all := []error{ErrNoQuorum}
	if slices.ContainsFunc(e.Nodes, func(r observe.Result) bool { return r.Err == nil && r.Reply.Status == node.Quarantined }) {
		all = append(all, ErrQuarantine)
	}
	for _, r := range e.Nodes {
		if r.Err != nil {
			all = append(all, r.Err)
		}
	}
	return all
}

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
		return []error{ErrLost, lockerrors.ErrNotExtended}
	}
	return []error{ErrLost, e.Err}
}

// lostWithout returns the error for the lock of a handle that is no lease here.
func lostWithout(name string, token Token, why error) *LostError {
	e := &LostError{Name: name, Token: token, Err: why}
	e.Reason = e.reason(false)
	return e
}
