package lockerrors

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Quarantine says how much longer a node is quarantined, and why.
func Quarantine(left time.Duration, reason string) string {
	return fmt.Sprintf("quarantined for another %v (%s)", left.Round(time.Millisecond), Reason(reason))
}

// Text returns the message of a node's error, without what only a program
// needs to know: whether the request had an effect.
func Text(err error) string {
	text := strings.ReplaceAll(err.Error(), " ("+node.ErrUnsent.Error()+")", "")
	return strings.ReplaceAll(strings.TrimPrefix(text, "redlatch: "), "(redlatch: ", "(")
}

// Reason explains a reason of a quarantine.
func Reason(reason string) string {
	switch reason {
	case node.ReasonFresh:
		return "clock was set back"
	case node.ReasonNew:
		return "new, or lost its data"
	case node.ReasonChanged:
		return "restarted or promoted; may lack the last writes"
	case node.ReasonMembership:
		return "membership changed"
	case node.ReasonBarred:
		return "membership change not finished"
	}
	return "may have forgotten locks"
}
