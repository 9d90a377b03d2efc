package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

const (
	// applicationID marks a database as ours: "rltc" as big-endian bytes.
	applicationID = 0x726c7463

	// format is the version of the schema. A file of another one is refused.
	format = 7
)

// Times are microseconds on the file's clock. Texts are compared byte by byte,
// which is SQLite's default and what a name needs.
var schema = []string{
	// One row about the file. boot is empty if locks expire by the wall clock: the
	// clock is a property of the file, since two processes that read one row by
	// different clocks would not exclude each other. Tokens up to floor are refused
	// for every name without a fence of its own.
	`CREATE TABLE meta (
		id    TEXT NOT NULL,
		boot  TEXT NOT NULL,
		floor INTEGER NOT NULL
	)`,
	// A name, and all that is known about it. The row stays until it is swept.
	`CREATE TABLE lock (
		name    TEXT PRIMARY KEY,
		version TEXT NOT NULL,
		state   BLOB NOT NULL
	) WITHOUT ROWID`,
	fmt.Sprintf(`PRAGMA application_id = %d`, applicationID),
	fmt.Sprintf(`PRAGMA user_version = %d`, format),
}

// isNew reports whether the file has nothing in it. If it has, it must be ours.
func isNew(ctx context.Context, conn *sql.Conn) (bool, error) {
	var app, version, tables int
	err := conn.QueryRowContext(ctx,
		`SELECT a.application_id, v.user_version, (SELECT count(*) FROM sqlite_schema)
		 FROM pragma_application_id a, pragma_user_version v`).Scan(&app, &version, &tables)
	switch {
	case err != nil:
		return false, err
	case app == 0 && version == 0 && tables == 0:
		return true, nil
	case app != applicationID:
		return false, errForeign
	case version > format:
		return false, faultf("the file has format %d and this release knows %d: upgrade redlatch, or choose another path", version, format)
	case version != format:
		return false, faultf("the file has format %d and this release knows %d: when no process uses it, remove it, or choose another path", version, format)
	}
	return false, nil
}

// create makes a new file ours. Any number of processes may do this at the same
// time; the first one does it.
func (s *store) create(ctx context.Context, conn *sql.Conn) error {
	var mode string
	if err := conn.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return faultf("the file cannot be shared between processes here (journal mode %q): choose a path on a local disk", mode)
	}
	return transaction(ctx, conn, func() error {
		blank, err := isNew(ctx, conn)
		if err != nil || !blank {
			return err
		}
		for _, statement := range schema {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		_, err = conn.ExecContext(ctx, `INSERT INTO meta (id, boot, floor) VALUES (?, ?, 0)`, rand.Text(), s.time.boot)
		return err
	})
}

// transaction runs do in a transaction that writes, if no other process has one.
func transaction(ctx context.Context, conn *sql.Conn, do func() error) error {
	_, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`)
	if err != nil {
		return err
	}
	if err = do(); err == nil {
		_, err = conn.ExecContext(ctx, `COMMIT`)
	}
	if err != nil {
		_, _ = conn.ExecContext(context.Background(), `ROLLBACK`)
	}
	return err
}

// adopt reads what does not change from the file. If this is the first process
// since the machine booted, it ends what was left before: its times are on the
// clock of an earlier boot, and its holders are gone.
func (s *store) adopt(ctx context.Context, conn *sql.Conn) error {
	var boot string
	read := func() error {
		return conn.QueryRowContext(ctx, `SELECT id, boot FROM meta`).Scan(&s.id, &boot)
	}
	if err := read(); err != nil {
		return err
	}
	switch {
	case boot == "":
		s.time.boot = "" // it goes by the wall clock
		return nil
	case s.time.boot == "":
		return errNoBootClock
	case boot == s.time.boot:
		return nil
	}
	return transaction(ctx, conn, func() error {
		if err := read(); err != nil || boot == s.time.boot {
			return err
		}
		return s.reboot(ctx, conn)
	})
}

// reboot leaves the marks of each name, and what all fences are: the floor.
func (s *store) reboot(ctx context.Context, conn *sql.Conn) error {
	found, err := conn.QueryContext(ctx, `SELECT name, state FROM lock`)
	if err != nil {
		return err
	}
	defer found.Close()
	var seen casnode.Snapshot
	s.clocks(&seen)
	var highest node.Token
	left := map[string][]byte{}
	for found.Next() {
		if err := found.Scan(&seen.Row.Name, &seen.Row.State); err != nil {
			return err
		}
		state, fence := casnode.Rebooted(seen)
		highest = max(highest, fence)
		if state != nil {
			left[seen.Row.Name] = state
		}
	}
	if err := found.Err(); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, `DELETE FROM lock`)
	for name, state := range left {
		if err == nil {
			_, err = conn.ExecContext(ctx, `INSERT INTO lock (name, version, state) VALUES (?, ?, ?)`, name, rand.Text(), state)
		}
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, `UPDATE meta SET boot = ?, floor = max(floor, ?)`, s.time.boot, int64(highest))
	}
	return err
}
