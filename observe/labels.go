package observe

import (
	"context"
	"errors"
	"strings"
	"unicode"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
)

// longestPart is how many bytes of a name between two separators may become
// part of a label. Longer ones are more likely keys than words.
const longestPart = 40

// NamePattern returns a label for the name of a lock, such that names which
// differ only in a key have the same one: "orders/42" becomes "orders/*". A part
// of the name is replaced if it has a digit or is longer than 40 bytes; parts
// are separated by / : . and space. What a terminal would not show, such as
// marks that turn the direction of text around, is left out.
//
// Names whose keys are words, like "customer/smith", need a function of their
// own. Observers for metrics limit the number of labels in case there is none.
func NamePattern(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return -1
	}, name)
	var b strings.Builder
	for {
		i := strings.IndexAny(name, "/:. ")
		part := name
		if i >= 0 {
			part = name[:i]
		}
		if len(part) > longestPart || strings.IndexFunc(part, unicode.IsDigit) >= 0 {
			part = "*"
		}
		b.WriteString(part)
		if i < 0 {
			return b.String()
		}
		b.WriteByte(name[i])
		name = name[i+1:]
	}
}

// Outcome returns a label for the error of a request for a lock, or for the
// cause of the end of a lease: one of a few words, for metrics.
//
//	ok            nil
//	held          another client held the lock
//	no_quorum     too few nodes answered
//	quarantine    too few nodes grant, because they may have forgotten locks
//	canceled      the caller gave up
//	deadline      the caller's time was over
//	config        an option, a name or the membership is wrong
//	changing      the membership is being changed
//	closed        the client was closed
//	deadlock      the caller holds the lock already
//	released      the lease was released
//	detached      the lease was handed on
//	max_hold      the lease was lost at the end of its MaxHold
//	taken         the lease was lost because nodes report that it is not ours
//	not_extended  the lease was lost because it was not extended in time
//	other         anything else
func Outcome(err error) string {
	if err == nil {
		return "ok"
	}
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			return o.label
		}
	}
	return "other"
}

// outcomes are the labels of errors. Some errors are two of them: the first
// counts.
var outcomes = []struct {
	err   error
	label string
}{
	{lockerrors.ErrMaxHold, "max_hold"}, {lockerrors.ErrNotExtended, "not_extended"}, {lockerrors.ErrLost, "taken"},
	{context.Canceled, "canceled"}, {context.DeadlineExceeded, "deadline"},
	{lockerrors.ErrHeld, "held"}, {lockerrors.ErrQuarantine, "quarantine"}, {lockerrors.ErrNoQuorum, "no_quorum"},
	{node.ErrChanging, "changing"}, {node.ErrConfig, "config"}, {lockerrors.ErrDeadlock, "deadlock"},
	{lockerrors.ErrReleased, "released"}, {lockerrors.ErrDetached, "detached"}, {node.ErrClosed, "closed"},
}
