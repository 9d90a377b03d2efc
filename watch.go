package redlatch

import (
	"context"
	"iter"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// lockState is who holds a lock, as a quorum of nodes reports it.
type lockState struct {
	Held   bool
	Holder Holder // zero if Held is false
}

// holder returns the holder, or nil if the lock is not held.
func (s lockState) holder() *Holder {
	if !s.Held {
		return nil
	}
	return &s.Holder
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
		var last lockState
		known, failing := false, false
		for ctx.Err() == nil {
			if c.cluster.Closing() {
				yield(last.holder(), ErrClosed)
				return
			}
			state, agreed, err := c.state(ctx, name, key)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil && !failing:
				failing = true
				if !yield(last.holder(), err) {
					return
				}
			case err == nil && agreed && (!known || failing || !state.same(last)):
				known, failing, last = true, false, state
				if !yield(state.holder(), nil) {
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

// same reports whether two states have the same holder.
func (s lockState) same(other lockState) bool {
	return s.Held == other.Held && s.Holder.Owner == other.Holder.Owner && s.Holder.Token == other.Holder.Token &&
		s.Holder.Holders == other.Holder.Holders
}

// state asks the nodes who holds a lock. agreed says that a quorum names the
// same holder, or readers, or slots, or none.
func (c *Client) state(ctx context.Context, name, key string) (s lockState, agreed bool, err error) {
	results, err := c.survey(ctx, name, node.Request{Op: node.OpInspect, Name: key}, allAnswer)
	if err != nil {
		return s, false, err
	}
	free := 0
	for _, r := range results {
		if r.Err == nil && r.Reply.Status == node.Absent {
			free++
		}
	}
	quorum := protocol.Quorum(len(results))
	if free >= quorum {
		return s, true, nil
	}
	holders := HoldersOf(results...)
	if len(holders) > 0 && holders[0].Nodes >= quorum {
		return lockState{Held: true, Holder: holders[0]}, true, nil
	}
	if first, nodes := together(holders); nodes >= quorum {
		return lockState{Held: true, Holder: first}, true, nil
	}
	return s, false, nil
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
