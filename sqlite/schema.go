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
	format = 2
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
	// The holder of a name, the token that it was granted with (0 for none),
	// and the fence, which others may have raised since. A free name stays
	// until its fence is over and it is swept.
	`CREATE TABLE lock (
		row         INTEGER PRIMARY KEY,
		name        TEXT NOT NULL UNIQUE,
		value       TEXT NOT NULL,
		until       INTEGER NOT NULL,
		fence       INTEGER NOT NULL,
		fence_until INTEGER NOT NULL,
		token       INTEGER NOT NULL DEFAULT 0
	)`,
	// The queues. Renewing a place touches no index.
	`CREATE TABLE waiter (
		row    INTEGER PRIMARY KEY,
		name   TEXT NOT NULL,
		value  TEXT NOT NULL,
		ticket INTEGER NOT NULL,
		lapses INTEGER NOT NULL,
		UNIQUE (name, value)
	)`,
	`CREATE INDEX waiter_order ON waiter (name, ticket, value)`,
	fmt.Sprintf(`PRAGMA application_id = %d`, applicationID),
	fmt.Sprintf(`PRAGMA user_version = %d`, format),
}

// toFormat2 upgrades a file from format 1 to format 2. The tokens of present
// holders are not known.
var toFormat2 = []string{
	`ALTER TABLE lock ADD COLUMN token INTEGER NOT NULL DEFAULT 0`,
	`PRAGMA user_version = 2`,
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
	steps := schema
	if version == 1 {
		steps = toFormat2
	}
	for _, s := range steps {
		if _, err := n.conn.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	if version > 0 {
		return nil
	}
	k := n.time
	_, err = n.conn.ExecContext(ctx, `INSERT INTO meta (id, clock, boot, floor) VALUES (?, ?, ?, 0)`,
		rand.Text(), k.best(), k.boot)
	return err
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
