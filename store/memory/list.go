package memory

import (
	"context"

	"github.com/redlatch/redlatch/node"
)

var _ node.Lister = (*Node)(nil)

// List calls found for every name that is held, waited for, or was broken.
func (n *Node) List(ctx context.Context, prefix string, found func(node.Listing)) error {
	all, err := n.listings(ctx, prefix)
	for _, l := range all {
		l.Waiters = nil
		found(l)
	}
	return err
}

// listings copies all names at once, so that found may call the node.
func (n *Node) listings(ctx context.Context, prefix string) ([]node.Listing, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.unable(ctx); err != nil {
		return nil, err
	}
	return n.state.List(n.clock(), prefix), nil
}

// Look returns what the node knows about one name.
func (n *Node) Look(ctx context.Context, name string) (node.Listing, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.unable(ctx); err != nil {
		return node.Listing{}, err
	}
	return n.state.Look(n.clock(), name), nil
}

// unable returns why the node does not answer. The mutex is held.
func (n *Node) unable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return unsent(err)
	}
	if n.down != nil {
		return unsent(n.down)
	}
	return nil
}
