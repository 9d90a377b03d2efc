package redlatch

import (
	"context"
	"iter"
	"time"

	"github.com/redlatch/redlatch/internal/holders"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

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
