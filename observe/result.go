package observe

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
)

// Result is what one node answered, or why there is no answer.
type Result struct {
	Node  string
	Reply node.Reply // the answer, if Err is nil
	Err   error
}

func (r Result) String() string {
	if r.Err != nil {
		return r.Node + ": " + lockerrors.Text(r.Err)
	}
	s := r.Node + ": " + r.Reply.Status.String()
	switch r.Reply.Status {
	case 0:
		return r.Node + ": answered"
	case node.Quarantined:
		if r.Reply.NeedsMark {
			return fmt.Sprintf("%s for %v once it is marked (%s)", s, r.Reply.Left.Round(time.Millisecond), lockerrors.Reason(r.Reply.Reason))
		}
		return r.Node + ": " + lockerrors.Quarantine(r.Reply.Left, r.Reply.Reason)
	case node.Behind, node.Ahead:
		s += fmt.Sprintf(", which says %s", r.Reply.Now.UTC().Format(time.RFC3339))
	case node.Misconfigured:
		if r.Reply.Guard != nil && !r.Reply.Guard.Barred() {
			s += fmt.Sprintf(" or other parameters: %s, locks of up to %v", r.Reply.Guard.Nodes, r.Reply.Guard.MaxTTL)
		}
	}
	return s
}
