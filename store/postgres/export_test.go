package postgres

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
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

var Explain = explain

// Store returns what is under a node.
func Store(n *Node) casnode.Store { return n.store }

// Execute executes a statement on a connection of a node.
func Execute(t testing.TB, n *Node, text string) [][][]byte {
	t.Helper()
	rows, err := n.store.query(t.Context(), text)
	check.Must(t, err)
	return rows
}

// Query executes statements that may fail on a connection of a node, for a caller who
// may have left.
func Query(ctx context.Context, n *Node, texts ...string) error {
	conn, err := n.store.pool.Acquire(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer conn.Release()
	var all []func(*pgproto3.Frontend)
	for _, text := range texts {
		all = append(all, simple(text))
	}
	_, err = execute(ctx, conn.Conn().PgConn(), all...)
	return err
}

// Together executes texts together, each with a value for $1, and returns what those
// that are committed found.
func Together(ctx context.Context, n *Node, value string, texts ...string) (found []string, err error) {
	var calls []call
	for _, text := range texts {
		calls = append(calls, call{statement: named("(text)", text), values: []string{value}})
	}
	results, err := n.store.run(ctx, calls...)
	for _, r := range results {
		found = append(found, string(r.Rows[0][0]))
	}
	return found, err
}

// Unsent reports whether an error says that nothing was executed.
func Unsent(err error) bool { return errors.Is(explain(err), node.ErrUnsent) }

// Mistake has the session of the node's only connection take its server for another.
func Mistake(t testing.TB, n *Node) {
	t.Helper()
	conn, err := n.store.pool.Acquire(t.Context())
	check.Must(t, err)
	conn.Conn().PgConn().CustomData()[preparedHere] = &session{has: map[string]bool{}, server: "'1'"}
	conn.Release()
}

// Prepared returns how many statements are prepared there.
func Prepared(t testing.TB, n *Node) int {
	t.Helper()
	count, err := strconv.Atoi(string(Execute(t, n, "SELECT count(*) FROM pg_prepared_statements")[0][0]))
	check.Must(t, err)
	return count
}

// SentAs returns the type of the message in which each statement is sent on a session of
// our own, by its text.
func SentAs() map[string]byte {
	s, as := &store{table: "locks", places: "places"}, map[string]byte{}
	q := s.statements()
	all := []statement{q.look, q.put, q.drop, q.live}
	for _, k := range kinds() {
		all = append(all, s.statement(k))
	}
	for _, st := range all {
		var sent bytes.Buffer
		f := pgproto3.NewFrontend(nil, &sent)
		call{statement: st, values: []string{"x"}}.send(f)
		_ = f.Flush()
		as[st.text] = sent.Bytes()[0]
	}
	return as
}
