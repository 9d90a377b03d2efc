// Package mysql keeps locks in a table of a MySQL or MariaDB database.
//
//	n, err := mysql.New("locks@tcp(db.internal:3306)/app", mysql.Options{})
//	client, err := redlatch.New([]redlatch.Node{n}, redlatch.Options{})
//
// It has leases, tokens, order, readers, slots and marks like every node, by the
// database's own clock. Nothing depends on a session, so it also works behind a
// proxy that shares connections. Waiters poll, by their place in the queue: these
// servers cannot notify them.
//
// # The table
//
// The node creates its table when it is first used, if its user may. Schema
// returns the statements for those who create it by hand, with the rights that a
// user of locks needs. All that is known about a name is one row, which is
// replaced by compare-and-swap: see internal/rownode.
//
// # Failover
//
// A server that is crash-safe forgets nothing when it restarts
// (innodb_flush_log_at_trx_commit = 1, and with a binary log sync_binlog = 1). A
// disk that is set back to a snapshot is not noticed. A replica that is promoted lacks what the
// primary had not sent. The node notices that by the server's identity, and is
// quarantined like a Redis server that restarted, with the guard on.
package mysql

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/redlatch/redlatch/internal/rownode"
	"github.com/redlatch/redlatch/node"
)

// Options are the settings of a Node. The zero value works.
type Options struct {
	// Table is the name of the table, with its database if it is not that of the
	// connection. Defaults to redlatch_lock.
	Table string
	// Name names the node in errors and in the membership. Defaults to
	// mysql://ADDRESS/DATABASE/TABLE, without user and password, for a DSN. It
	// is required for Over.
	Name string
}

// defaultTable is the name of the table, if none is set.
const defaultTable = "redlatch_lock"

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$`)

// Node keeps locks in a table of a MySQL or MariaDB database. It is safe for use
// by many goroutines and clients.
type Node struct {
	*rownode.Node
	store *store
}

var (
	_ node.Node       = (*Node)(nil)
	_ node.Lister     = (*Node)(nil)
	_ node.Guarded    = (*Node)(nil)
	_ node.Evidencer  = (*Node)(nil)
	_ node.Identifier = (*Node)(nil)
)

// New returns a node for a data source name, in the form of package
// github.com/go-sql-driver/mysql. It connects when it is first used.
func New(dsn string, opts Options) (*Node, error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, &node.ConfigError{Field: "dsn", Value: "(hidden)", Bound: "a data source name such as user:password@tcp(host:3306)/database"}
	}
	return open(config, opts)
}

func open(config *mysql.Config, opts Options) (*Node, error) {
	// One round trip a statement, and no prepared statement on the server.
	config.InterpolateParams = true
	config.Logger = &mysql.NopLogger{} // what it would log is in errors
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, &node.ConfigError{Field: "dsn", Value: "(hidden)", Bound: "a data source name: " + err.Error()}
	}
	if opts.Name == "" {
		table := opts.Table
		if table == "" {
			table = defaultTable
		}
		opts.Name = fmt.Sprintf("mysql://%s/%s/%s", config.Addr, config.DBName, table)
	}
	n, err := Over(sql.OpenDB(connector), opts)
	if err == nil {
		n.store.own = true
	}
	return n, err
}

// Over returns a node over a database that the program has. Close does not close
// it.
func Over(db *sql.DB, opts Options) (*Node, error) {
	if opts.Table == "" {
		opts.Table = defaultTable
	}
	switch {
	case db == nil:
		return nil, &node.ConfigError{Field: "db", Value: "nil", Bound: "an open database"}
	case opts.Name == "":
		return nil, &node.ConfigError{Field: "Name", Value: "", Bound: "a name that all clients of this database use"}
	}
	if err := checkTable(opts.Table); err != nil {
		return nil, err
	}
	s := &store{db: db, name: opts.Name, table: quote(opts.Table)}
	return &Node{rownode.New(s, true), s}, nil
}

func checkTable(name string) error {
	if !tableName.MatchString(name) {
		return &node.ConfigError{Field: "Table", Value: name, Bound: "a name of letters, digits and _, with a database and a dot before it or without"}
	}
	return nil
}

// quote quotes a table's name, which has no quotes in it.
func quote(table string) string { return "`" + strings.ReplaceAll(table, ".", "`.`") + "`" }

// Schema returns the statements that create a table, and the rights that a user
// of locks needs.
func Schema(table string) (string, error) {
	if table == "" {
		table = defaultTable
	}
	if err := checkTable(table); err != nil {
		return "", err
	}
	return create(quote(table)) + ";\nGRANT SELECT, INSERT, UPDATE, DELETE ON " + quote(table) + " TO locks;\n", nil
}

// create is the statement that creates the table.
func create(table string) string {
	return `CREATE TABLE IF NOT EXISTS ` + table + ` (
	name     VARBINARY(1024) NOT NULL PRIMARY KEY,
	version  BIGINT NOT NULL,
	state    MEDIUMBLOB NOT NULL,
	until_us BIGINT NOT NULL,
	KEY (until_us)
) ENGINE = InnoDB`
}

// GuardsAlone reports true: a replica that lacks the last commits can take the
// server's place.
func (n *Node) GuardsAlone() bool { return true }
