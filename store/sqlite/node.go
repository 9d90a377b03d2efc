package sqlite

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// A Node keeps locks in a file on this machine. Several goroutines and clients
// may use it at the same time.
type Node struct {
	rows  *casnode.Node
	store *store
}

var (
	_ node.Identifier = (*Node)(nil)
	_ node.Lister     = (*Node)(nil)
	_ node.Slow       = (*Node)(nil)
)

// Do executes one request. It waits for other processes until the context ends.
func (n *Node) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	return n.rows.Do(ctx, req)
}

// Records reads or writes the records of a name.
func (n *Node) Records(ctx context.Context, req node.RecordsRequest) (node.RecordsReply, error) {
	return n.rows.Records(ctx, req)
}

// List calls found for every name that is held or waited for.
func (n *Node) List(ctx context.Context, prefix string, found func(node.Listing)) error {
	return n.rows.List(ctx, prefix, found)
}

// Look returns what the file has about one name.
func (n *Node) Look(ctx context.Context, name string) (node.Listing, error) {
	return n.rows.Look(ctx, name)
}

// String returns "sqlite:" and the absolute path of the file.
func (n *Node) String() string { return n.store.String() }

// Identity returns a text that is stored in the file, and so is the same by
// every path.
func (n *Node) Identity(context.Context) (string, time.Time, error) {
	return "sqlite:" + n.store.id, n.store.time.wall(), nil
}

// TimeLimit is longer than a server's: many processes may wait for the file,
// and a busy disk does not mean that it is gone.
func (n *Node) TimeLimit() time.Duration { return 5 * time.Second }

// Close closes the file. Locks in it are not changed.
func (n *Node) Close() error { return n.store.Close() }
