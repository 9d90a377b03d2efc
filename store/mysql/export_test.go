package mysql

import (
	"context"
	"database/sql"

	"github.com/redlatch/redlatch/node/casnode"
)

// Between returns a node on the same table that calls f between the read and the
// write of each operation.
func Between(n *Node, f func()) *Node {
	return &Node{casnode.New(between{n.store, f}, nil), n.store}
}

type between struct {
	*store
	f func()
}

func (b between) Swap(ctx context.Context, seen casnode.Snapshot, next casnode.Row, wakes []string) (bool, error) {
	b.f()
	return b.store.Swap(ctx, seen, next, wakes)
}

// SwapStamped is between what the node remembers and its write.
func (b between) SwapStamped(ctx context.Context, seen casnode.Snapshot, next casnode.Row, wakes []string) (bool, casnode.Snapshot, error) {
	b.f()
	return b.store.SwapStamped(ctx, seen, next, wakes)
}

const PoolSize = poolSize

var Explain = explain

// Store returns what is under a node.
func Store(n *Node) casnode.Store { return n.store }

// Pool returns the connections of a node.
func Pool(n *Node) *sql.DB { return n.store.db }
