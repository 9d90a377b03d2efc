package redlatch

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
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

func (h Holder) String() string {
	var b strings.Builder
	switch h.Kind {
	case KindReserved:
		return "the next in line"
	case KindForeign:
		fmt.Fprintf(&b, "a foreign format (a key of type %s)", h.Owner)
	case KindPlain:
		fmt.Fprintf(&b, "another client (%s)", h.Owner)
	default:
		b.WriteString(h.Owner)
	}
	others := h.Holders - 1
	switch {
	case h.Slots > 0 && others == 0:
		fmt.Fprintf(&b, " (slot %d of %d)", h.Slot, h.Slots)
	case h.Slots > 0:
		fmt.Fprintf(&b, " (slot %d of %d) and in %s", h.Slot, h.Slots, plural(others, "other slot"))
	case h.Shared && others == 0:
		b.WriteString(" (a reader)")
	case h.Shared:
		fmt.Fprintf(&b, " and %s", plural(others, "other reader"))
	}
	if !h.Since.IsZero() {
		fmt.Fprintf(&b, " since %s (%v ago)", clockText(h.Since, h.Held), roughly(h.Held))
	}
	if h.Left == node.NoExpiry {
		way := "redlatch break"
		if h.Kind == KindForeign {
			way += " --foreign"
		}
		fmt.Fprintf(&b, " with no expiry: its owner must delete it; or use %s", way)
	} else {
		fmt.Fprintf(&b, "; it expires in %v unless extended", roughly(h.Left))
	}
	return b.String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// clockText returns a time of day, with the date if it is a day ago or more.
func clockText(t time.Time, ago time.Duration) string {
	if ago >= 24*time.Hour {
		return t.Local().Format("2006-01-02 15:04:05")
	}
	return t.Local().Format("15:04:05")
}

// roughly rounds a duration for a human reader.
func roughly(d time.Duration) time.Duration {
	if d >= time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}
