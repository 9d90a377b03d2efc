package sqlite

import (
	"context"
	"crypto/rand"
	"fmt"
)

const (
	// applicationID marks a database as ours: "rltc" as big-endian bytes.
	applicationID = 0x726c7463

	// format is the version of the schema. Releases that know the same format
	// share a file. A release refuses a file of a newer format, and upgrades
	// one of an older format.
	format = 3
)

// Times are nanoseconds on the file's clock. Texts are compared byte by byte,
// which is SQLite's default and what a value needs.
var schema = []string{
	// One row about the file. Tokens up to floor are refused for every name
	// without a fence of its own.
	`CREATE TABLE meta (
		id    TEXT NOT NULL,
		clock TEXT NOT NULL,
		boot  TEXT NOT NULL,
		floor INTEGER NOT NULL
	)`,
	// A name. value, until and token (0 for none) are of its exclusive holder.
	// If several is not 0, its holders are in the table holder, and until is the
	// latest of their expiries. kept_until is when fence and floor are over. A
	// free name stays until then, and is swept. released is the last time, in
	// microseconds of the wall clock, at which a share may have been released; 0
	// if that is not known.
	`CREATE TABLE lock (
		row        INTEGER PRIMARY KEY,
		name       TEXT NOT NULL UNIQUE,
		value      TEXT NOT NULL,
		until      INTEGER NOT NULL,
		fence      INTEGER NOT NULL,
		kept_until INTEGER NOT NULL,
		token      INTEGER NOT NULL,
		floor      INTEGER NOT NULL,
		several    INTEGER NOT NULL,
		released   INTEGER NOT NULL
	)`,
	// The queues. Renewing a place touches no index.
	`CREATE TABLE waiter (
		row    INTEGER PRIMARY KEY,
		name   TEXT NOT NULL,
		value  TEXT NOT NULL,
		ticket INTEGER NOT NULL,
		lapses INTEGER NOT NULL,
		kind   TEXT NOT NULL,
		UNIQUE (name, value)
	)`,
	createOrder,
	createHolder,
	createTrigger,
	createMark,
	fmt.Sprintf(`PRAGMA application_id = %d`, applicationID),
	fmt.Sprintf(`PRAGMA user_version = %d`, format),
}

const (
	createOrder = `CREATE INDEX waiter_order ON waiter (name, ticket, kind, value)`

	// Readers and holders of slots, in the order in which they came. Exclusive
	// holders are not here, so that their locks need no second table.
	createHolder = `CREATE TABLE holder (
		row   INTEGER PRIMARY KEY,
		name  TEXT NOT NULL,
		value TEXT NOT NULL,
		kind  TEXT NOT NULL,
		slot  INTEGER NOT NULL,
		until INTEGER NOT NULL,
		token INTEGER NOT NULL,
		UNIQUE (name, value)
	)`
	createTrigger = `CREATE TRIGGER lock_deleted AFTER DELETE ON lock WHEN old.several BEGIN
		DELETE FROM holder WHERE name = old.name;
	END`
)

// upgrades has, for each older format, what makes it the next one.
var upgrades = map[int][]string{
	// The tokens of present holders are not known.
	1: {
		`ALTER TABLE lock ADD COLUMN token INTEGER NOT NULL DEFAULT 0`,
		`PRAGMA user_version = 2`,
	},
	// A process of an older release that has the file open would not see
	// readers. It reads fence_until in every request, and now gets an error.
	2: {
		`ALTER TABLE lock RENAME COLUMN fence_until TO kept_until`,
		`ALTER TABLE lock ADD COLUMN floor INTEGER NOT NULL DEFAULT 0`,
		`ALTER TABLE lock ADD COLUMN several INTEGER NOT NULL DEFAULT 0`,
		`ALTER TABLE lock ADD COLUMN released INTEGER NOT NULL DEFAULT 0`,
		`UPDATE lock SET floor = fence`,
		`ALTER TABLE waiter ADD COLUMN kind TEXT NOT NULL DEFAULT ''`,
		`DROP INDEX waiter_order`,
		createOrder,
		createHolder,
		createTrigger,
		createMark,
		`PRAGMA user_version = 3`,
	},
}

// formatOf returns the format of the file: 0 for a new one.
func (n *Node) formatOf(ctx context.Context) (int, error) {
	var app, version, tables int
	err := n.conn.QueryRowContext(ctx,
		`SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_schema)
		 FROM pragma_application_id a, pragma_user_version v`).Scan(&app, &version, &tables)
	switch {
	case err != nil:
		return 0, err
	case app == 0 && version == 0 && tables == 0:
		return 0, nil
	case app != applicationID:
		return 0, errForeign
	case version < 1 || version > format:
		return 0, faultf("has format %d and this release knows %d: upgrade redlatch, or choose another path", version, format)
	}
	return version, nil
}

// create makes a new file ours, or upgrades one of an older format. Any number
// of processes may do this at the same time; the first one does it.
func (n *Node) create(ctx context.Context) error {
	var mode string
	if err := n.conn.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return faultf("cannot be shared between processes here (journal mode %q): choose a path on a local disk", mode)
	}
	if err := n.begin(ctx, beginWrite); err != nil {
		return err
	}
	if err := n.createTables(ctx); err != nil {
		n.rollback()
		return err
	}
	err := n.exec(commit)
	if err != nil {
		n.rollback()
	}
	return err
}

func (n *Node) createTables(ctx context.Context) error {
	version, err := n.formatOf(ctx)
	if err != nil || version == format {
		return err
	}
	if version > 0 {
		for ; version < format && err == nil; version++ {
			err = n.run(ctx, upgrades[version])
		}
		return err
	}
	if err := n.run(ctx, schema); err != nil {
		return err
	}
	k := n.time
	_, err = n.conn.ExecContext(ctx, `INSERT INTO meta (id, clock, boot, floor) VALUES (?, ?, ?, 0)`,
		rand.Text(), k.best(), k.boot)
	return err
}

// run executes statements.
func (n *Node) run(ctx context.Context, statements []string) error {
	for _, s := range statements {
		if _, err := n.conn.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// read reads what does not change from the file.
func (n *Node) read(ctx context.Context) error {
	var clock string
	if err := n.conn.QueryRowContext(ctx, `SELECT id, clock FROM meta`).Scan(&n.id, &clock); err != nil {
		return err
	}
	if clock == byBoot && n.time.best() != byBoot {
		return errNoBootClock
	}
	n.time = n.time.by(clock)
	return nil
}
