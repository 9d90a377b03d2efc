package node

import (
	"fmt"
	"strings"
	"time"
)

// Result is what one node answered, or why there is no answer.
type Result struct {
	Node  string
	Reply Reply // the answer, if Err is nil
	Err   error
}

func (r Result) String() string {
	if r.Err != nil {
		return r.Node + ": " + ErrorText(r.Err)
	}
	if r.Reply.Status == 0 {
		return r.Node + ": answered"
	}
	if r.Reply.Status == Quarantined {
		return r.Node + ": " + r.Reply.quarantine()
	}
	s := r.Node + ": " + r.Reply.Status.String()
	switch r.Reply.Status {
	case Behind, Ahead:
		s += fmt.Sprintf(", which says %s", r.Reply.Now.UTC().Format(time.RFC3339))
	case Misconfigured:
		if r.Reply.Guard != nil && !r.Reply.Guard.Barred() {
			s += fmt.Sprintf(" or other parameters: %s, locks of up to %v", r.Reply.Guard.Nodes, r.Reply.Guard.MaxTTL)
		}
	}
	return s
}

// quarantine says how long the node is quarantined, and why.
func (r Reply) quarantine() string {
	if r.NeedsMark() {
		return fmt.Sprintf("quarantined for %v once it is marked (%s)", r.Left.Round(time.Millisecond), ReasonText(r.Reason))
	}
	return QuarantineText(r.Left, r.Reason)
}

// QuarantineText says how much longer a node is quarantined, and why.
func QuarantineText(left time.Duration, reason string) string {
	return fmt.Sprintf("quarantined for another %v (%s)", left.Round(time.Millisecond), ReasonText(reason))
}

// ErrorText returns the message of a node's error, without what only a program
// needs to know: whether the request had an effect.
func ErrorText(err error) string {
	text := strings.ReplaceAll(err.Error(), " ("+ErrUnsent.Error()+")", "")
	return strings.ReplaceAll(strings.TrimPrefix(text, "redlatch: "), "(redlatch: ", "(")
}

// ReasonText explains a reason of a quarantine.
func ReasonText(reason string) string {
	switch reason {
	case ReasonFresh:
		return "clock was set back"
	case ReasonNew, ReasonUnmarked:
		return "new, or lost its data"
	case ReasonChanged, ReasonRemark:
		return "restarted or promoted; may lack the last writes"
	case ReasonMembership:
		return "membership changed"
	case ReasonBarred:
		return "membership change not finished"
	}
	return "may have forgotten locks"
}
