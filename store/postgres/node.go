// Package postgres keeps locks in a table of a PostgreSQL database.
//
//	n, err := postgres.Open("postgres://locks@db.internal/app", nil)
//	client, err := redlatch.New([]redlatch.Node{n}, nil)
//
// It has leases, tokens, order, readers, slots and marks like every node, by the
// database's own clock. Only notifications need a session (LISTEN and NOTIFY). So
// it also works behind a pooler in transaction mode, such as PgBouncer: the node
// notices that no notification arrives, and waiters poll.
//
// # The table
//
// The node creates its table when it is first used, if its user may. Schema
// returns the statements to create it by hand, with the rights that a
// user of locks needs. All that is known about a name is one row, which is
// replaced by compare-and-swap, and a row in a second table for each waiter: see
// store/casnode. The table is logged, and
// each change waits until it is on disk, whatever the server's default for
// synchronous_commit.
//
// # Failover
//
// A single server forgets nothing when it restarts. A replica that is promoted
// lacks what the primary had not sent. The node notices that by the timeline of
// the log, and is quarantined like a Redis server that restarted, with the guard
// on. A disk that is set back to a snapshot is not noticed.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// Options are the settings of a Node. The zero value works.
type Options struct {
	// Table is the name of the table, with its schema if that is not public. The
	// search path is not used: it may lead each user to another table. Defaults
	// to redlatch_lock.
	Table string
	// Poll has waiters poll, and uses no connection for notifications. Defaults
	// to false.
	Poll bool
	// Name names the node in errors and in the membership. Defaults to
	// postgres://HOST:PORT/DATABASE/SCHEMA.TABLE, without user and password.
	Name string
}

// Node keeps locks in a table of a PostgreSQL database. It is safe for use by
// many goroutines and clients.
type Node struct {
	*casnode.Node
	store *store
	poll  bool
}

// open returns a node for a connection string of package pgx.
func open(dsn string, opts Options) (*Node, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		// Without the connection string, which may have a password.
		inner := cmp.Or(errors.Unwrap(err), errors.New("it cannot be parsed"))
		return nil, &node.ConfigError{Field: "dsn", Value: "(hidden)", Bound: "a PostgreSQL connection string: " + inner.Error()}
	}
	config.AfterConnect = mayPrepare
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("redlatch: postgres: %w", err)
	}
	n, err := newNode(pool, opts)
	if err != nil {
		pool.Close()
		return nil, err
	}
	n.store.own = true
	return n, nil
}

// From returns a node over a pool that the program has. Close does not close the
// pool.
func From(pool *pgxpool.Pool, opts *Options) (*Node, error) {
	if pool == nil {
		return nil, &node.ConfigError{Field: "pool", Value: "nil", Bound: "an open pool"}
	}
	return newNode(pool, optional.Value(opts))
}

func newNode(pool *pgxpool.Pool, opts Options) (*Node, error) {
	name, table, err := quote(opts.Table)
	if err != nil {
		return nil, err
	}
	if opts.Name == "" {
		c := pool.Config().ConnConfig
		opts.Name = fmt.Sprintf("postgres://%s/%s/%s", hostPort(c), url.PathEscape(c.Database), name)
	}
	n := &Node{poll: opts.Poll}
	n.store = &store{pool: pool, name: opts.Name, table: table, places: placesOf(table), channel: channelPrefix(name), texts: map[kind]statement{}}
	n.store.queue = n.store.statements()
	for _, k := range kinds() {
		n.store.texts[k] = n.store.statement(k)
	}
	n.Node = casnode.New(n.store, &casnode.Options{Requests: int(pool.Config().MaxConns), Poll: opts.Poll})
	return n, nil
}

func hostPort(c *pgx.ConnConfig) string {
	if strings.HasPrefix(c.Host, "/") {
		return url.PathEscape(c.Host)
	}
	return fmt.Sprintf("%s:%d", c.Host, c.Port)
}
