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
		text := strings.TrimPrefix(r.Err.Error(), "redlatch: ")
		return r.Node + ": " + strings.ReplaceAll(text, "(redlatch: ", "(")
	}
	if r.Reply.Status == 0 {
		return r.Node + ": answered"
	}
	s := r.Node + ": " + r.Reply.Status.String()
	switch r.Reply.Status {
	case Behind, Ahead:
		s += fmt.Sprintf(", which says %s", r.Reply.Now.UTC().Format(time.RFC3339))
	case Misconfigured:
		if r.Reply.Guard != nil && !r.Reply.Guard.Barred() {
			s += fmt.Sprintf(", or with other bounds: %s, locks of up to %v", r.Reply.Guard.Nodes, r.Reply.Guard.MaxTTL)
		}
	case Quarantined:
		from := " yet"
		if r.Reply.NeedsMark() {
			from = " from when it is marked"
		}
		s += fmt.Sprintf(" for %v%s", r.Reply.Left.Round(time.Millisecond), from)
		s += ", since " + ReasonText(r.Reply.Value)
	}
	return s
}

// ReasonText explains a reason of a quarantine.
func ReasonText(reason string) string {
	switch reason {
	case ReasonFresh:
		return "its clock was set back"
	case ReasonNew, ReasonUnmarked:
		return "it is new or has lost its data"
	case ReasonChanged, ReasonRemark:
		return "it restarted or was promoted, and may lack the last writes"
	case ReasonList:
		return "the list of nodes was changed"
	case ReasonBarred:
		return "a change of the list of nodes is not finished"
	}
	return "it may have forgotten locks"
}
