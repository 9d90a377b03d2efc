package mysql

import (
	"context"
	"fmt"
	"strings"
	"time"

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

// ShiftClock has the server's clock be off, for a node that has been used.
func ShiftClock(n *Node, off time.Duration) {
	const clock = "UTC_TIMESTAMP(6)"
	p := *n.store.prepared.Load()
	p.texts.read = strings.ReplaceAll(p.texts.read, clock, fmt.Sprintf("(%s + INTERVAL %d SECOND)", clock, int(off.Seconds())))
	n.store.prepared.Store(&p)
}

// Remove reads rows of a node's table, calls f and removes them, as a sweep does.
func Remove(ctx context.Context, n *Node, f func(), names ...string) error {
	var rows []casnode.Row
	var seen casnode.Snapshot
	for _, name := range names {
		var err error
		if seen, err = n.store.Read(ctx, name); err != nil {
			return err
		}
		rows = append(rows, seen.Row)
	}
	f()
	return n.store.Remove(ctx, seen, rows)
}

// Walk calls f for the names of a node's rows.
func (n *Node) Walk(ctx context.Context, f func(name string)) error {
	rows, err := n.store.Scan(ctx, "", 1000)
	for _, r := range rows {
		f(r.Name)
	}
	return err
}

const PoolSize = poolSize

var Explain = explain

// Store returns what is under a node.
func Store(n *Node) casnode.Store { return n.store }
