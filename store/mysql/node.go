// Package mysql keeps locks in a table of a MySQL or MariaDB database.
//
//	n, err := mysql.Open("mysql://locks@db.internal/app", nil)
//	client, err := redlatch.New([]redlatch.Node{n}, nil)
//
// It has leases, tokens, order, readers, slots and marks like every node, by the
// database's own clock. Nothing depends on a session, so it also works behind a
// proxy that shares connections. With Open, a process that waits has one more session,
// which sleeps until another one ends that statement (KILL QUERY). Where that does not
// arrive, and with From, waiters poll, by their place in the queue.
//
// # The table
//
// The node creates its two tables when it is first used, if its user may. Schema
// returns the statements to create them by hand, with the rights that a user of
// locks needs. A lock is one row, which is replaced by compare-and-swap, and each
// waiter has a row of its own: see store/casnode. Each write of a lock verifies in its own statement
// that the session commits it, and that the server is no replica.
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
	"cmp"
	"database/sql"
	"fmt"

	"github.com/go-sql-driver/mysql"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/internal/sqltable"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// Options are the settings of a Node. The zero value works.
type Options struct {
	// Table is the name of the table, with its database if it is not that of the
	// connection. Defaults to redlatch_lock.
	Table string
	// Name names the node in errors and in the membership. Defaults to
	// mysql://ADDRESS/DATABASE/TABLE, without user and password, for a DSN. It
	// is required for From.
	Name string
}

// Node keeps locks in a table of a MySQL or MariaDB database. It is safe for use
// by many goroutines and clients.
type Node struct {
	*casnode.Node
	store *store
}

// Prompt reports false: a statement has longer than its caller. See slack.
func (n *Node) Prompt() bool { return false }

func open(config *mysql.Config, opts Options) (*Node, error) {
	db, err := openPool(config)
	if err != nil {
		return nil, &node.ConfigError{Field: "dsn", Value: "(hidden)", Bound: "a data source name: " + err.Error()}
	}
	if opts.Name == "" {
		opts.Name = fmt.Sprintf("mysql://%s/%s/%s", config.Addr, config.DBName, cmp.Or(opts.Table, sqltable.Default))
	}
	return from(db, opts, &casnode.Options{Requests: poolSize}, true)
}

// From returns a node over a database that the program has. Close does not close
// it. As many requests use it at a time as it may have connections
// (SetMaxOpenConns), which is looked at now; the others wait for their turn. Its
// waiters poll: no session is kept from the program.
func From(db *sql.DB, opts *Options) (*Node, error) {
	most := 0
	if db != nil {
		most = db.Stats().MaxOpenConnections
	}
	return from(db, optional.Value(opts), &casnode.Options{Requests: most, Poll: true}, false)
}

func from(db *sql.DB, o Options, nodes *casnode.Options, own bool) (*Node, error) {
	switch {
	case db == nil:
		return nil, &node.ConfigError{Field: "db", Value: "nil", Bound: "an open database"}
	case o.Name == "":
		return nil, &node.ConfigError{Field: "Name", Value: "", Bound: "a name that all clients of this database use"}
	}
	table, err := quote(o.Table)
	if err != nil {
		return nil, err
	}
	s := &store{db: db, own: own, name: o.Name, table: table, places: placesOf(table)}
	return &Node{casnode.New(s, nodes), s}, nil
}

// quote quotes a table's name, or the default.
func quote(table string) (string, error) {
	return sqltable.Quote(cmp.Or(table, sqltable.Default), "`", "database")
}

// Schema returns the statements that create a table, and the rights that a user
// of locks needs.
func Schema(table string) (string, error) {
	q, err := quote(table)
	if err != nil {
		return "", err
	}
	const rights = ";\nGRANT SELECT, INSERT, UPDATE, DELETE ON %s TO locks;\n"
	return fmt.Sprintf(create(q)+rights+createPlaces(placesOf(q))+rights, q, placesOf(q)) +
		// Comments that one of the two servers executes.
		"-- Whether this server replicates from another one, which MariaDB shows:\n" +
		"/*M! GRANT " + mariaDB.seeSources + " TO locks */;\n" +
		"-- and MySQL:\n" +
		"/*!80000 GRANT SELECT ON performance_schema.replication_applier_status TO locks */;\n" +
		"-- Whether a transaction is open in its own session, which MySQL shows:\n" +
		"/*!80000 GRANT SELECT ON performance_schema.events_transactions_current TO locks */;\n" +
		"/*!80000 GRANT SELECT (thread_id, processlist_id) ON performance_schema.threads TO locks */;\n" +
		"/*!80000 GRANT " + mySQL.seeSources + " TO locks */;\n", nil
}

// Warnings returns what the node could not find out about its server.
func (n *Node) Warnings() []string {
	if p := n.store.prepared.Load(); p != nil && p.blind {
		return []string{"it cannot be seen whether this server is set up as a replica: GRANT " + p.seeSources}
	}
	return nil
}
