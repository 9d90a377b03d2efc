package postgres

import (
	"context"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node/casnode"
)

// OverPaused returns a node that calls between after each read, before the write
// that belongs to it.
func OverPaused(pool *pgxpool.Pool, opts Options, between func()) (*casnode.Node, error) {
	n, err := From(pool, &opts)
	if err != nil {
		return nil, err
	}
	return casnode.New(&paused{n.store, between}, &casnode.Options{Poll: true}), nil
}

type paused struct {
	*store
	between func()
}

func (s *paused) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	r, err := s.store.Read(ctx, name)
	s.between()
	return r, err
}

// Swap is between what the node remembers and its write.
func (s *paused) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (bool, casnode.Snapshot, error) {
	if w.Stamped {
		s.between()
	}
	return s.store.Swap(ctx, seen, w)
}

// Remove reads rows of a node's table, calls between and removes them, as a sweep
// does.
func Remove(ctx context.Context, n *Node, between func(), names ...string) error {
	var rows []casnode.Row
	var seen casnode.Snapshot
	for _, name := range names {
		var err error
		if seen, err = n.store.Read(ctx, name); err != nil {
			return err
		}
		rows = append(rows, seen.Row)
	}
	between()
	return n.store.Remove(ctx, seen, rows)
}

// Store returns what is under a node.
func Store(n *Node) casnode.Store { return n.store }

// Execute executes a statement on a connection of a node.
func Execute(t testing.TB, n *Node, text string) [][][]byte {
	t.Helper()
	rows, err := n.store.query(t.Context(), text)
	check.Must(t, err)
	return rows
}

// Query executes a statement that may fail on a connection of a node.
func Query(ctx context.Context, n *Node, text string) error {
	_, err := n.store.query(ctx, text)
	return err
}

// Prepared returns how many statements are prepared there.
func Prepared(t testing.TB, n *Node) int {
	t.Helper()
	count, err := strconv.Atoi(string(Execute(t, n, "SELECT count(*) FROM pg_prepared_statements")[0][0]))
	check.Must(t, err)
	return count
}
