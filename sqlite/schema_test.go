package sqlite

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// former has the schemas of older formats, as their releases wrote them.
var former = map[int][]string{
	1: {
		`CREATE TABLE meta (id TEXT NOT NULL, clock TEXT NOT NULL, boot TEXT NOT NULL, floor INTEGER NOT NULL)`,
		`CREATE TABLE lock (
			row         INTEGER PRIMARY KEY,
			name        TEXT NOT NULL UNIQUE,
			value       TEXT NOT NULL,
			until       INTEGER NOT NULL,
			fence       INTEGER NOT NULL,
			fence_until INTEGER NOT NULL
		)`,
		`CREATE TABLE waiter (
			row    INTEGER PRIMARY KEY,
			name   TEXT NOT NULL,
			value  TEXT NOT NULL,
			ticket INTEGER NOT NULL,
			lapses INTEGER NOT NULL,
			UNIQUE (name, value)
		)`,
		`CREATE INDEX waiter_order ON waiter (name, ticket, value)`,
		`PRAGMA application_id = 0x726c7463`,
		`PRAGMA user_version = 1`,
	},
	2: {
		`CREATE TABLE meta (
			id    TEXT NOT NULL,
			clock TEXT NOT NULL,
			boot  TEXT NOT NULL,
			floor INTEGER NOT NULL
		)`,
		`CREATE TABLE lock (
			row         INTEGER PRIMARY KEY,
			name        TEXT NOT NULL UNIQUE,
			value       TEXT NOT NULL,
			until       INTEGER NOT NULL,
			fence       INTEGER NOT NULL,
			fence_until INTEGER NOT NULL,
			token       INTEGER NOT NULL DEFAULT 0
		)`,
		`CREATE TABLE waiter (
			row    INTEGER PRIMARY KEY,
			name   TEXT NOT NULL,
			value  TEXT NOT NULL,
			ticket INTEGER NOT NULL,
			lapses INTEGER NOT NULL,
			UNIQUE (name, value)
		)`,
		`CREATE INDEX waiter_order ON waiter (name, ticket, value)`,
		`PRAGMA application_id = 0x726c7463`,
		`PRAGMA user_version = 2`,
	},
}

// formerFile makes a file of an older format. The name "held" has a holder and
// two waiters, and a fence above the holder's token. The name "free" has a fence.
// It returns the file's clock, and a connection of the older release.
func formerFile(t *testing.T, version int) (path string, k timekeeper, old *sql.Conn) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "locks.db")
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	ctx := context.Background()
	if old, err = db.Conn(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { old.Close() })
	now := time.Now()
	in := func(d time.Duration) int64 { return now.Add(d).UnixNano() }
	run := func(text string, args ...any) {
		t.Helper()
		if _, err := old.ExecContext(ctx, text, args...); err != nil {
			t.Fatal(err)
		}
	}
	run(`PRAGMA journal_mode = WAL`)
	for _, s := range former[version] {
		run(s)
	}
	run(`INSERT INTO meta (id, clock, boot, floor) VALUES ('the id', 'wall', '', 7)`)
	token := now.UnixMicro()
	lock := `INSERT INTO lock (name, value, until, fence, fence_until) VALUES (?, ?, ?, ?, ?)`
	run(lock, "held", "one", in(time.Minute), token+5, in(time.Hour))
	run(lock, "free", "", 0, token+9, in(time.Hour))
	if version > 1 {
		run(`UPDATE lock SET token = ? WHERE name = 'held'`, token)
	}
	for _, w := range []struct {
		value  string
		ticket int64
	}{{"second", 2}, {"first", 1}} {
		run(`INSERT INTO waiter (name, value, ticket, lapses) VALUES ('held', ?, ?, ?)`, w.value, w.ticket, in(10*time.Second))
	}
	return path, timekeeper{wall: func() time.Time { return now }}, old
}

func TestAFileOfAnOlderFormatIsBroughtUpToDate(t *testing.T) {
	for version := range former {
		path, k, _ := formerFile(t, version)
		n := mustOpen(t, path, k)
		if n.id != "the id" {
			t.Errorf("format %d: the id is %q", version, n.id)
		}
		token := node.Token(k.wall().UnixMicro())
		holder := node.Token(0) // not in format 1
		if version > 1 {
			holder = token
		}
		l, err := n.Look(context.Background(), "held")
		if err != nil {
			t.Fatal(err)
		}
		if r := l.Reply; r.Status != node.Held || r.Value != "one" || r.Fence != token+5 || r.HolderToken != holder || r.Left != time.Minute || len(l.Holders) != 1 {
			t.Errorf("format %d: what was held is now %+v", version, l)
		}
		want := []node.Waiter{{Value: "first", Ticket: 1}, {Value: "second", Ticket: 2}}
		if !slices.Equal(l.Waiters, want) {
			t.Errorf("format %d: those who wait are %+v", version, l.Waiters)
		}
		expect := func(want node.Status, req node.Request) {
			t.Helper()
			if r := do(t, n, req); r.Status != want {
				t.Errorf("format %d: %v by %s: %v, want %v", version, req.Op, req.Value, r.Status, want)
			}
		}
		reader := func(name, value string, token node.Token) node.Request {
			req := withToken(request(node.OpAcquire, name, value), token)
			req.Share = node.Share{Mode: node.Shared}
			return req
		}
		// Every holder was exclusive, and its token is the floor.
		expect(node.Stale, reader("free", "reader", token+9))
		expect(node.Granted, reader("free", "reader", token+10))
		expect(node.Granted, reader("free", "reader 2", token+11))
		expect(node.Held, reader("held", "reader", token+20))
		expect(node.Granted, withToken(request(node.OpExtend, "held", "one"), token))
		expect(node.Granted, withToken(request(node.OpRelease, "held", "one"), token))
		second := withToken(request(node.OpAcquire, "held", "second"), token+30)
		second.Wait, second.Ticket = true, 2
		expect(node.Reserved, second)
		first := withToken(request(node.OpAcquire, "held", "first"), token+30)
		first.Wait, first.Ticket = true, 1
		expect(node.Granted, first)

		// The same tables as in a new file.
		fresh := mustOpen(t, filepath.Join(t.TempDir(), "new.db"), k)
		if got, want := columns(t, n), columns(t, fresh); got != want {
			t.Errorf("format %d: its tables are now\n%s\nwant\n%s", version, got, want)
		}
	}
}

// columns lists the columns of all tables and indexes, and the triggers.
func columns(t *testing.T, n *Node) string {
	t.Helper()
	var all []string
	err := n.each(`SELECT s.type || ' ' || s.name || ' ' || s.tbl_name || ' ' || coalesce(c.name, '') || ' ' || coalesce(i.name, '')
		FROM sqlite_schema s LEFT JOIN pragma_table_info(s.name) c LEFT JOIN pragma_index_info(s.name) i`, nil, func(scan func(...any) error) error {
		var s string
		err := scan(&s)
		all = append(all, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// TestAProcessOfAnOlderReleaseGetsAnError has the file open while a new release
// upgrades it. It does not know of readers, so it must not read the file on.
func TestAProcessOfAnOlderReleaseGetsAnError(t *testing.T) {
	for version, columns := range map[int]string{1: "fence, fence_until", 2: "fence, fence_until, token"} {
		path, k, old := formerFile(t, version)
		ctx := context.Background()
		load, err := old.PrepareContext(ctx, `SELECT row, value, until, `+columns+` FROM lock WHERE name = ?1`)
		if err != nil {
			t.Fatal(err)
		}
		defer load.Close()
		ask := func() error {
			rows, err := load.QueryContext(ctx, "held")
			if err != nil {
				return err
			}
			defer rows.Close()
			rows.Next()
			return rows.Err()
		}
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		mustOpen(t, path, k)
		if err := ask(); err == nil {
			t.Errorf("a process that knows format %d goes on", version)
		}
	}
}

// TestAFileThatANewerReleaseChangedIsExplained is the same for later formats.
func TestAFileThatANewerReleaseChangedIsExplained(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	n := mustOpen(t, path, systemTime())
	do(t, n, request(node.OpAcquire, "name", "one"))
	alter(t, path, `ALTER TABLE lock RENAME COLUMN kept_until TO kept`)
	if _, err := n.Do(context.Background(), request(node.OpExtend, "name", "one")); err == nil || !strings.Contains(err.Error(), "a newer release") {
		t.Errorf("the answer is %v", err)
	}
}
