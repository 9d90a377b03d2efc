package sim

import (
	"fmt"
	"hash/fnv"

	"github.com/redlatch/redlatch/node"
)

// note adds a line to the trace, and to the digest of what happened.
func (w *World) note(format string, args ...any) {
	if !w.keep {
		return
	}
	line := fmt.Sprintf("%12v  ", w.now()) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	h.Write([]byte(line))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
	w.digest = mix(w.digest ^ h.Sum64())
}

// trace notes what a server did.
func (w *World) trace(l *link, req node.Request, f fate, reply node.Reply, err error) {
	if !w.keep {
		return
	}
	harm := ""
	if f.harm != unharmed {
		harm = ", " + harms[f.harm]
	}
	what := reply.Status.String()
	if reply.Rank > 0 {
		what += fmt.Sprintf(", place %d", reply.Rank)
	}
	if err != nil {
		what = err.Error()
	}
	if reply.Status == node.Granted && req.Op == node.OpAcquire && reply.Share.Mode == node.Slotted {
		what += fmt.Sprintf(", slot %d", reply.Share.Slot)
	}
	share := ""
	if req.Mode != node.Exclusive {
		share = req.Share.Text() + ", "
	}
	w.note("client %d -> %s: %v %.6s %stoken %d: %s%s", l.client, l.name, req.Op, req.Value, share, uint64(req.Token)%1e9, what, harm)
}
