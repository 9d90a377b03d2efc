// Package postgres keeps locks in a table of a PostgreSQL database.
//
//	n, err := postgres.New("postgres://locks@db.internal/app", postgres.Options{})
//	client, err := redlatch.New([]redlatch.Node{n}, redlatch.Options{})
//
// It has leases, tokens, order, readers, slots and marks like every node, by the
// database's own clock. Only notifications need a session (LISTEN and NOTIFY). So
// it also works behind a pooler in transaction mode, such as PgBouncer: the node
// notices that no notification arrives, and waiters poll.
//
// # The table
//
// The node creates its table when it is first used, if its user may. Schema
// returns the statements for those who create it by hand, with the rights that a
// user of locks needs. All that is known about a name is one row, which is
// replaced by compare-and-swap: see internal/rownode. The table is logged, and
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
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redlatch/redlatch/internal/rownode"
	"github.com/redlatch/redlatch/node"
)

// Options are the settings of a Node. The zero value works.
type Options struct {
	// Table is the name of the table, with its schema if it is not on the search
	// path. Defaults to redlatch_lock.
	Table string
	// Poll has waiters poll, and uses no connection for notifications. Defaults
	// to false.
	Poll bool
	// Name names the node in errors and in the membership. Defaults to
	// postgres://HOST:PORT/DATABASE/TABLE, without user and password.
	Name string
}

// defaultTable is the name of the table, if none is set.
const defaultTable = "redlatch_lock"

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

// Node keeps locks in a table of a PostgreSQL database. It is safe for use by
// many goroutines and clients.
type Node struct {
	*rownode.Node
	store   *store
	channel string
	poll    bool
	ears    ears
}

var (
	_ node.Node       = (*Node)(nil)
	_ node.Lister     = (*Node)(nil)
	_ node.Waker      = (*Node)(nil)
	_ node.Guarded    = (*Node)(nil)
	_ node.Evidencer  = (*Node)(nil)
	_ node.Identifier = (*Node)(nil)
)

// New returns a node for a connection string, in the form of package pgx: a URL
// or keywords and values. It connects when it is first used.
func New(dsn string, opts Options) (*Node, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, &node.ConfigError{Field: "dsn", Value: "(hidden)", Bound: "a PostgreSQL connection string: " + plain(err)}
	}
	config.ConnConfig.DefaultQueryExecMode = mode
	config.AfterConnect = registerTypes
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

// plain returns an error of the parser without the connection string, which may
// have a password.
func plain(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		return inner.Error()
	}
	return "it cannot be parsed"
}

// Over returns a node over a pool that the program has. Close does not close the
// pool.
func Over(pool *pgxpool.Pool, opts Options) (*Node, error) {
	if pool == nil {
		return nil, &node.ConfigError{Field: "pool", Value: "nil", Bound: "an open pool"}
	}
	return newNode(pool, opts)
}

func newNode(pool *pgxpool.Pool, opts Options) (*Node, error) {
	if opts.Table == "" {
		opts.Table = defaultTable
	}
	if err := checkTable(opts.Table); err != nil {
		return nil, err
	}
	if opts.Name == "" {
		c := pool.Config().ConnConfig
		opts.Name = fmt.Sprintf("postgres://%s/%s/%s", hostPort(c), url.PathEscape(c.Database), opts.Table)
	}
	quoted, channel := quote(opts.Table), "redlatch:"+strings.ToLower(opts.Table)
	n := &Node{channel: channel, poll: opts.Poll}
	n.store = &store{pool: pool, name: opts.Name, table: quoted, texts: statements(quoted, channel)}
	n.Node = rownode.New(n.store, opts.Poll)
	n.ears.node = n
	return n, nil
}

func hostPort(c *pgx.ConnConfig) string {
	if strings.HasPrefix(c.Host, "/") {
		return url.PathEscape(c.Host)
	}
	return fmt.Sprintf("%s:%d", c.Host, c.Port)
}

func checkTable(name string) error {
	if !tableName.MatchString(name) {
		return &node.ConfigError{Field: "Table", Value: name, Bound: "a name of letters, digits and _, with a schema and a dot before it or without"}
	}
	return nil
}

// quote quotes a table's name, which has no quotes in it.
func quote(table string) string {
	parts := strings.Split(table, ".")
	for i, p := range parts {
		parts[i] = `"` + p + `"`
	}
	return strings.Join(parts, ".")
}

// Schema returns the statements that create a table, and the rights that a user
// of locks needs.
func Schema(table string) (string, error) {
	if table == "" {
		table = defaultTable
	}
	if err := checkTable(table); err != nil {
		return "", err
	}
	return create(quote(table)) + fmt.Sprintf(`;
GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO locks;
GRANT EXECUTE ON FUNCTION pg_control_system() TO locks;
`, quote(table)), nil
}

// create is the statement that creates the table. Rows are replaced all the
// time: with room in each page they stay in it, and no index is written.
func create(table string) string {
	return `CREATE TABLE IF NOT EXISTS ` + table + ` (
	name    bytea PRIMARY KEY,
	version bigint NOT NULL,
	state   bytea NOT NULL,
	until   timestamptz NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`
}

// Do executes one request.
func (n *Node) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if req.Wait || req.Op == node.OpOffer {
		n.ears.expect(waiter{req.Name, req.Value})
	}
	reply, err := n.Node.Do(ctx, req)
	reply.Wakes = reply.Rank > 0 && n.ears.hears()
	if reply.Rank > 0 && !reply.Wakes {
		n.ears.open()
	}
	return reply, err
}

// GuardsAlone reports true: a replica that lacks the last commits can take the
// server's place.
func (n *Node) GuardsAlone() bool { return true }

// Close closes the connections that the node opened.
func (n *Node) Close() error {
	n.ears.close()
	return n.Node.Close()
}
