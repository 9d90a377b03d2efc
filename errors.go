package redlatch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/errs"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
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
	// context, the lock that Do holds for it. Locks are not re-entrant, so this
	// wait could not end.
	ErrDeadlock = errs.ErrDeadlock

	// ErrHeld is returned when another client holds the lock. The error is a
	// *HeldError that says which one, since when, and when it expires.
	ErrHeld = errs.ErrHeld

	// ErrNoQuorum is returned when too few nodes answered in time. The error is
	// a *QuorumError that says what each node answered.
	ErrNoQuorum = errs.ErrNoQuorum

	// ErrQuarantine is returned, along with ErrNoQuorum, when nodes do not
	// grant because they may have forgotten locks. It passes by itself; the
	// *QuorumError says when.
	ErrQuarantine = errs.ErrQuarantine

	// ErrNodeTimeout is the error of a node, in a *QuorumError, that did not
	// answer within its time limit.
	ErrNodeTimeout = runner.ErrNodeTimeout

	// ErrLost is returned when the lease ended without being released: it could
	// not be extended in time, or the nodes report that it is no longer ours.
	// The error is a *LostError that says which lock, since when, and why. This
	// and the errors below are also the causes of the end of a lease's context.
	ErrLost = errs.ErrLost

	// ErrMaxHold is returned by Extend when the lease's deadline has reached
	// its MaxHold: the lease cannot be extended further, and is valid until its
	// deadline. Together with ErrLost, it is the cause with which such a lease
	// ends.
	ErrMaxHold = errs.ErrMaxHold

	// ErrReleased is returned when the lease was released by its owner.
	ErrReleased = errs.ErrReleased

	// ErrDetached is returned when the lease was handed on with Detach.
	ErrDetached = errs.ErrDetached
)

// Holder is what is known about the holder of a lock.
type Holder struct {
	// Owner is host/pid/label for a lease, the value for a plain lock, and
	// the type of the key for a foreign one.
	Owner string
	// Token is the holder's own token; 0 if it has none.
	Token Token
	// Since is when the lock was acquired, on the nodes' clocks; zero if that
	// is not known.
	Since time.Time
	// Held is how long ago that was when the nodes answered.
	Held time.Duration
	// Left is the time until the lock expires unless its holder extends it;
	// node.NoExpiry if it never does.
	Left time.Duration
	// Kind says what sort of client holds it.
	Kind HolderKind
	// Shared says that it is a reader. Slots is the number of slots of the lock,
	// and Slot the holder's; both are 0 for a lock without slots.
	Shared      bool
	Slots, Slot int
	// Holders is how many hold the lock together, this one included: readers,
	// or callers with a slot.
	Holders int
	// Nodes is the number of nodes that name this holder.
	Nodes int
}

// HeldError says who holds a lock.
type HeldError struct {
	Name string
	// Holders are the holders that the nodes name. The one that most nodes name
	// comes first. There is more than one while contenders split the nodes, and
	// if nodes name different ones of several that hold the lock together.
	Holders []Holder
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
	Nodes []node.Result
	// Quarantined is how many nodes are quarantined, and QuarantineLeft how long
	// it takes until enough of them are not. It is 0 if something else prevents
	// a quorum too, which does not end by itself.
	Quarantined    int
	QuarantineLeft time.Duration
}

func (e *QuorumError) Error() string {
	said := make([]string, len(e.Nodes))
	for i, r := range e.Nodes {
		said[i] = r.String()
	}
	why := fmt.Sprintf("no quorum (%d of %d needed)", e.Need, len(e.Nodes))
	if e.Late {
		why = fmt.Sprintf("too late: no validity left after %v", e.Elapsed.Round(time.Microsecond))
	}
	what := fmt.Sprintf("%s %q", e.Op, e.Name)
	switch {
	case e.Op == node.OpInspect && e.Name == "":
		what = "list the locks"
	case e.Op == node.OpMark:
		what = "mark the nodes"
	}
	s := fmt.Sprintf("redlatch: cannot %s: %s: %s", what, why, strings.Join(said, "; "))
	if e.quarantined(node.ReasonNew) {
		s += "; " + waitOut
	}
	if e.quarantined(node.ReasonUnmarked) {
		s += "; a node that lost its marker is marked when a quorum confirms the membership, or by redlatch init"
	}
	return s
}

// waitOut says what to do about nodes that are new or have lost their data.
const waitOut = "wait until quarantine ends, as redlatch init does: a lock from before a loss of data may still be held; only brand-new servers may be trusted at once, with redlatch init --assume-fresh"

// quarantined reports whether a node is quarantined, for the given reason if
// that is not empty.
func (e *QuorumError) quarantined(reason string) bool {
	return slices.ContainsFunc(e.Nodes, func(r node.Result) bool {
		return r.Err == nil && r.Reply.Status == node.Quarantined && (reason == "" || r.Reply.Value == reason)
	})
}

// countQuarantined sets Quarantined and QuarantineLeft from Nodes.
func (e *QuorumError) countQuarantined() {
	var ends []time.Duration
	for _, r := range e.Nodes {
		switch {
		case r.Err != nil || r.Reply.Status == node.Misconfigured:
		case r.Reply.Status == node.Quarantined:
			if !protocol.NeedsMark(r.Reply) {
				e.Quarantined++
				ends = append(ends, r.Reply.Left)
			}
		default:
			ends = append(ends, 0)
		}
	}
	e.QuarantineLeft, _ = protocol.QuorumAfter(ends, len(e.Nodes))
}

// Unwrap returns ErrNoQuorum, ErrQuarantine if a node is quarantined, and the
// nodes' own errors, so that errors.As finds a driver's.
func (e *QuorumError) Unwrap() []error {
	all := []error{ErrNoQuorum}
	if e.quarantined("") {
		all = append(all, ErrQuarantine)
	}
	for _, r := range e.Nodes {
		if r.Err != nil {
			all = append(all, r.Err)
		}
	}
	return all
}
