package redlatch

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/holders"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

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

// watchEvery is how often a watcher asks the nodes.
const watchEvery = 250 * time.Millisecond

// Watch reports who holds a lock: at once, and again whenever that changes,
// until ctx ends or the loop is left. The holder is nil while the lock is not
// held; if several hold it together, it is the first of them. Watch asks all
// nodes four times a second, and reports what a quorum of them agrees on. A
// holder that comes and goes in between is not seen. If too few nodes answer, it
// reports the last holder with an error, once, and goes on.
//
//	for holder, err := range client.Watch(ctx, "leader") {
//		...
//	}
//
// A report is the past: a leader that is reported may have lost the lock since.
func (c *Client) Watch(ctx context.Context, name string) iter.Seq2[*Holder, error] {
	return func(yield func(*Holder, error) bool) {
		key, err := c.key(name)
		if err != nil {
			yield(nil, err)
			return
		}
		var last *Holder
		known, failing := false, false
		for ctx.Err() == nil {
			if c.cluster.Closing() {
				yield(last, ErrClosed)
				return
			}
			now, agreed, err := c.state(ctx, name, key)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && !failing:
				failing = true
				if !yield(last, err) {
					return
				}
			case err == nil && agreed && (!known || failing || !now.same(last)):
				known, failing, last = true, false, now
				if !yield(now, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(watchEvery):
			}
		}
	}
}

// same reports whether two reports name the same holder; nil is none.
func (h *Holder) same(other *Holder) bool {
	if h == nil || other == nil {
		return h == other
	}
	return h.Owner == other.Owner && h.Token == other.Token && h.Holders == other.Holders
}

// state asks the nodes who holds a lock; nil if nobody does. agreed says that a
// quorum names the same holder, or readers, or slots, or none.
func (c *Client) state(ctx context.Context, name, key string) (holder *Holder, agreed bool, err error) {
	began := c.cluster.Clock().Uptime()
	results := c.cluster.Inspect(ctx, key, func() bool { return false })
	quorum, free, silent := protocol.Quorum(len(results)), 0, 0
	for _, r := range results {
		switch {
		case r.Err != nil:
			silent++
		case r.Reply.Status == node.Absent:
			free++
		}
	}
	if len(results)-silent < quorum {
		return nil, false, c.noQuorum(ctx, node.OpInspect, name, began, results)
	}
	named := holders.Of[Holder](results...)
	if free >= quorum {
		return nil, true, nil
	}
	if len(named) > 0 && named[0].Nodes >= quorum {
		return &named[0], true, nil
	}
	if first, nodes := together(named); nodes >= quorum {
		return &first, true, nil
	}
	return nil, false, nil
}

// together returns the first of those that hold a lock together, and how many
// nodes name one of them. Each node names the one that came there first.
func together(holders []Holder) (first Holder, nodes int) {
	for _, h := range holders {
		switch {
		case !h.Shared && h.Slots == 0:
			continue
		case nodes == 0:
			first = h
		case h.Shared != first.Shared || h.Slots != first.Slots:
			return Holder{}, 0
		case h.Token < first.Token:
			h.Holders = max(h.Holders, first.Holders)
			first = h
		default:
			first.Holders = max(h.Holders, first.Holders)
		}
		nodes += h.Nodes
	}
	first.Nodes = nodes
	return first, nodes
}
