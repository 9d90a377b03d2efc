package memory

import (
	"context"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

var _ node.Lister = (*Node)(nil)

// List calls found for every name that is held or waited for.
func (n *Node) List(ctx context.Context, prefix string, found func(node.Listing)) error {
	all, err := n.listings(ctx, prefix)
	for _, l := range all {
		l.Waiters = nil
		found(l)
	}
	return err
}

// listings looks at all names at once, so that found may call the node.
func (n *Node) listings(ctx context.Context, prefix string) ([]node.Listing, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.unable(ctx); err != nil {
		return nil, err
	}
	now := n.clock()
	var all []node.Listing
	for name, e := range n.names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		e.settle(now)
		if l := e.listing(name, now); l.Waiting > 0 || l.Reply.Status == node.Held {
			all = append(all, l)
		}
	}
	return all, nil
}

// Look returns what is known of one name.
func (n *Node) Look(ctx context.Context, name string) (node.Listing, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.unable(ctx); err != nil {
		return node.Listing{}, err
	}
	now := n.clock()
	return n.entry(name, now).listing(name, now), nil
}

// unable says why the node does not answer. The mutex is held.
func (n *Node) unable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return unsent(err)
	}
	if n.down != nil {
		return unsent(n.down)
	}
	return nil
}

func (e *entry) listing(name string, now time.Time) node.Listing {
	l := node.Listing{Name: name, Reply: node.Reply{Status: e.taken(), Fence: e.fence, Now: now}}
	if e.held() {
		l.Reply.Value, l.Reply.HolderToken, l.Reply.Left = e.value, e.token, e.until.Sub(now)
	}
	waiters := e.waiters()
	l.Waiting = len(waiters)
	for _, w := range waiters[:min(len(waiters), node.MaxWaiters)] {
		l.Waiters = append(l.Waiters, node.Waiter{Value: w.value, Ticket: w.ticket})
	}
	return l
}

// waiters returns the places in the queue, in order.
func (e *entry) waiters() []waiter { return e.queue.waiters }
