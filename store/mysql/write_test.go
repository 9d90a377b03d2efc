//go:build unix

package mysql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
	"github.com/redlatch/redlatch/store/mysql"
)

// acquire returns a request for the name "job".
func acquire(value string) node.Request {
	return node.Request{Op: node.OpAcquire, Name: "job", Value: value, TTL: time.Minute, Fencing: node.Fencing{Retention: time.Hour, Window: 10 * time.Second, Token: node.Token(time.Now().UnixMicro())}}
}

// granted checks that a request is granted.
func granted(t testing.TB, n node.Node, req node.Request) {
	t.Helper()
	if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Granted {
		t.Fatalf("%v of %q by %s: %v, %v; want granted", req.Op, req.Name, req.Value, r.Status, err)
	}
}

// heldFor checks that another caller is refused the lock of a request.
func heldFor(t testing.TB, n node.Node, req node.Request) {
	t.Helper()
	req.Op, req.Value, req.Token = node.OpAcquire, "two", req.Token+1
	if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Held {
		t.Errorf("another acquires %q: %v, %v; want held", req.Name, r.Status, err)
	}
}

// refused checks that a request is refused, with an error that says why.
func refused(t testing.TB, n node.Node, req node.Request, says string) {
	t.Helper()
	if r, err := n.Do(t.Context(), req); !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v of %q: %v, %v; want an error that says %q", req.Op, req.Name, r.Status, err, says)
	}
}

// operator returns connections to a server.
func operator(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// begin begins a transaction with a statement, as an operator.
func begin(t testing.TB, db *sql.DB, statement string) *sql.Tx {
	t.Helper()
	tx, err := db.Begin()
	must(t, err)
	t.Cleanup(func() { tx.Rollback() })
	_, err = tx.Exec(statement)
	must(t, err)
	return tx
}

// over returns a node over a pool of some connections.
func over(t testing.TB, dsn string, connections int) (*mysql.Node, *sql.DB) {
	t.Helper()
	db := operator(t, dsn)
	db.SetMaxOpenConns(connections)
	n, err := mysql.From(db, &mysql.Options{Name: "test"})
	must(t, err)
	return n, db
}

// betweenOnce returns a node that calls f between the read and the write of its
// first operation.
func betweenOnce(n *mysql.Node, f func()) *mysql.Node {
	var once sync.Once
	return mysql.Between(n, func() { once.Do(f) })
}

// TestWriteNeedsWhatWasRead changes the server, the marker or the session between
// a read and its write. The write must not be executed, of a row that exists and
// of one that does not, as text and by a statement that was prepared before.
func TestWriteNeedsWhatWasRead(t *testing.T) {
	onBoth(t, func(t *testing.T, p product) {
		server := p.replicating(t, 1)
		writeNeeds(t, p, server, func() (*mysql.Node, *sql.DB) { return over(t, server.DSN(), 1) })
		writeNeeds(t, p, server, func() (*mysql.Node, *sql.DB) {
			n := opened(t, server.DSN())
			db := mysql.Pool(n)
			db.SetMaxOpenConns(1)
			warm(t, n)
			var prepared string
			must(t, db.QueryRow("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'").Scan(&prepared, &prepared))
			if prepared == "0" {
				t.Error("no statement was prepared")
			}
			return n, db
		})
	})
}

// warm has each statement that reads or writes a row be executed three times. The
// bytes of its names are no text.
func warm(t testing.TB, n *mysql.Node) {
	t.Helper()
	s := mysql.Store(n)
	must(t, s.(casnode.Preparer).Prepare(t.Context()))
	for i := range 3 {
		for _, version := range []string{"first", "second"} {
			row := casnode.Row{Name: fmt.Sprint("warm\xff", i), Version: version, State: casnode.Unmarked()}
			seen, err := s.Read(t.Context(), row.Name)
			must(t, err)
			if done, _, err := s.Swap(t.Context(), seen, casnode.Write{Row: row}); err != nil || !done {
				t.Fatalf("a row is written: %v, %v", done, err)
			}
		}
	}
}

func writeNeeds(t *testing.T, p product, server *servertest.OwnDatabase, open func() (*mysql.Node, *sql.DB)) {
	marker := "UPDATE redlatch_lock SET version = 'another' WHERE name = ''"
	for _, c := range []struct {
		name, change, undo string
		says               string // in the error; "" if the request is decided anew
	}{
		{"another server", "SET GLOBAL server_id = 7", "SET GLOBAL server_id = 1", ""},
		{"another marker", marker, marker, ""},
		{"a session that does not commit", "SET SESSION autocommit = 0", "SET SESSION autocommit = 1", "autocommit"},
		{"a transaction", "BEGIN", "ROLLBACK", "a transaction is open"},
		{"a binary log of statements", "SET SESSION binlog_format = 'STATEMENT'", "SET SESSION binlog_format = 'ROW'", "binlog_format"},
		{"a server that is read-only", "SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0", "read-only"},
	} {
		if p.name == "MySQL" && c.name == "another server" {
			continue // its identity is in a file; TestConformanceOfMySQL has two servers
		}
		for _, exists := range []bool{false, true} {
			exec(t, server.DSN(), "DROP TABLE IF EXISTS redlatch_lock")
			n, db := open() // read and write have one session
			if exists {
				before := acquire("before")
				before.Op = node.OpRelease
				_, err := n.Do(t.Context(), before)
				must(t, err)
			}
			writes := 0
			b := mysql.Between(n, func() {
				if writes++; writes == 1 {
					run(t, db, c.change)
				}
			})
			r, err := b.Do(t.Context(), acquire("one"))
			run(t, db, c.undo)
			switch {
			case c.says == "" && (err != nil || r.Status != node.Granted || writes != 2):
				t.Errorf("%s, the row exists %v: %v, %v, after %d writes; want it granted by the second", c.name, exists, r.Status, err, writes)
			case c.says != "" && (err == nil || !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%s, the row exists %v: %v, %v; want an error about %q", c.name, exists, r.Status, err, c.says)
			}
			if c.says == "" {
				continue
			}
			if r, err := n.Do(t.Context(), node.Request{Op: node.OpInspect, Name: "job"}); err != nil || r.Status != node.Absent {
				t.Errorf("%s, the row exists %v: then %v, %v", c.name, exists, r.Status, err)
			}
			var open int
			if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.innodb_trx").Scan(&open); err != nil || open != 0 {
				t.Errorf("%s, the row exists %v: %d transactions are left open, %v", c.name, exists, open, err)
			}
		}
	}
}

// TestWriteThatIsLateInItsStatementIsTriedAgain locks the marker for more than the
// 5 ms that a statement may take until it compares the clock.
func TestWriteThatIsLateInItsStatementIsTriedAgain(t *testing.T) { onBoth(t, lateWrite) }

func lateWrite(t *testing.T, p product) {
	stall.Retry(t, func(t testing.TB) {
		n := opened(t, p.shared(t))
		warm(t, n)
		s := mysql.Store(n)
		seen, err := s.Read(t.Context(), "warm\xff0")
		must(t, err)
		keeps := begin(t, operator(t, p.shared(t)), "SELECT 1 FROM redlatch_lock WHERE name = '' FOR UPDATE")
		begun := time.Now()
		time.AfterFunc(30*time.Millisecond, func() { keeps.Rollback() })
		next := casnode.Row{Name: "warm\xff0", Version: "third", State: casnode.Unmarked()}
		done, _, err := s.Swap(t.Context(), seen, casnode.Write{Row: next, Stamped: true})
		must(t, err)
		if !done {
			stall.In(t, casnode.Span/2, begun)
			t.Error("a write that waited for the marker is not tried again")
		}
	})
}
