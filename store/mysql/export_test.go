package mysql

import (
	"context"
	"database/sql"

	"github.com/redlatch/redlatch/store/casnode"
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

func (b between) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (bool, casnode.Snapshot, error) {
	b.f()
	return b.store.Swap(ctx, seen, w)
}

const PoolSize = poolSize

var Explain = explain

// Store returns what is under a node.
func Store(n *Node) casnode.Store { return n.store }

// Pool returns the connections of a node.
func Pool(n *Node) *sql.DB { return n.store.db }
