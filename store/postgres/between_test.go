//go:build unix

package postgres_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

var must = check.Must

var listed = node.Guard{Membership: "list", Nodes: "one", MaxTTL: 30 * time.Second, Window: time.Minute, Quarantine: 30500 * time.Millisecond}

func wanted(op node.Op, value string) node.Request {
	return node.Request{Op: op, Name: "job", Value: value, TTL: 30 * time.Second, Fencing: node.Fencing{Retention: time.Hour, Window: time.Minute, Token: node.Token(time.Now().UnixMicro())}, Guard: &listed}
}

// openAt returns a node whose waiters poll, with a table of its own or the default one.
func openAt(t testing.TB, dsn, table string) *postgres.Node {
	t.Helper()
	n, err := postgres.Open(dsn, &postgres.Options{Poll: true, Table: table})
	must(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

// answer executes a request in the background.
func answer(t testing.TB, n node.Node, req node.Request) <-chan node.Reply {
	answered := make(chan node.Reply, 1)
	go func() {
		r, err := n.Do(t.Context(), req)
		if err != nil {
			t.Error(err)
		}
		answered <- r
	}()
	return answered
}

// begin begins a transaction with statements, as an operator.
func begin(t testing.TB, db *sql.DB, statements ...string) *sql.Tx {
	t.Helper()
	tx, err := db.Begin()
	must(t, err)
	t.Cleanup(func() { tx.Rollback() })
	for _, s := range statements {
		_, err := tx.Exec(s)
		must(t, err)
	}
	return tx
}

// exec executes statements, as an operator.
func exec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		_, err := db.Exec(s)
		must(t, err)
	}
}

func mustBe(t testing.TB, n node.Node, req node.Request, status node.Status) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r, err := n.Do(ctx, req); err != nil || r.Status != status {
		t.Fatalf("%v by %q: %v, %v; want %v", req.Op, req.Value, r.Status, err, status)
	}
}

// markListed declares a node new.
func markListed(t testing.TB, n node.Guarded) {
	t.Helper()
	if r, err := n.Mark(t.Context(), node.MarkRequest{Mark: node.MarkFresh, Guard: &listed}); err != nil || r.Status != node.Granted {
		t.Fatalf("marked: %v, %v", r.Status, err)
	}
}

// databaseAt returns connections to a database.
func databaseAt(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// until waits until a query returns true.
func until(t testing.TB, db *sql.DB, query string) {
	t.Helper()
	poll.Until(t, query, func() (yes bool) { return db.QueryRow(query).Scan(&yes) == nil && yes })
}

const blockedText = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock')`

// TestWriteThatIsLateEndsBeforeTheNextMarkerIsTrusted has a write wait for the
// lock of its row, while the membership is changed. The write comes after the new
// marker. What it grants has expired when that marker's quarantine is over.
func TestWriteThatIsLateEndsBeforeTheNextMarkerIsTrusted(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	db, b := databaseAt(t, dsn), openAt(t, dsn, "late")
	markListed(t, b)
	mustBe(t, b, wanted(node.OpAcquire, "before"), node.Granted)
	mustBe(t, b, wanted(node.OpRelease, "before"), node.Granted)
	tx := begin(t, db, `SELECT FROM late WHERE name = 'job' FOR UPDATE`)
	late := answer(t, b, wanted(node.OpAcquire, "late"))
	until(t, db, blockedText)
	next := listed
	next.Membership, next.Nodes = "next", "two"
	marked, err := b.Mark(t.Context(), node.MarkRequest{Mark: node.MarkReplace, Guard: &next})
	if err != nil || marked.Status != node.Quarantined {
		t.Fatalf("the next marker: %v, %v", marked.Status, err)
	}
	time.Sleep(time.Second)
	tx.Rollback()
	r := <-late
	l, err := b.Look(t.Context(), "job")
	must(t, err)
	t.Logf("the late write: %v; holders %v; the quarantine ends at %v", r.Status, l.Holders, marked.TrustedFrom)
	for _, h := range l.Holders {
		if h.Until.After(marked.TrustedFrom) {
			t.Errorf("a lock lives until %v, and the next marker is trusted from %v on", h.Until, marked.TrustedFrom)
		}
	}
	other := wanted(node.OpAcquire, "other")
	other.Guard = &next
	mustBe(t, b, other, node.Quarantined)
}

// TestMarkerOutlivesAnInsertThatWaits has an insert wait for another transaction
// with the same name. Meanwhile the marker cannot be deleted: the rows that are
// deleted with it may be those of a holder.
func TestMarkerOutlivesAnInsertThatWaits(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	db, b := databaseAt(t, dsn), openAt(t, dsn, "outlives")
	markListed(t, b)
	tx := begin(t, db, `INSERT INTO outlives VALUES ('job', 'x', '')`)
	waits := answer(t, b, wanted(node.OpAcquire, "waits"))
	until(t, db, blockedText)
	for _, text := range []string{`DELETE FROM outlives WHERE name = ''`, `TRUNCATE outlives`} {
		_, err := db.Exec(`SET lock_timeout = 300; ` + text + `; RESET lock_timeout`)
		if err == nil || !strings.Contains(err.Error(), "55P03") {
			t.Errorf("%s: %v; want it to wait", text, err)
		}
	}
	tx.Rollback()
	if r := <-waits; r.Status != node.Granted {
		t.Errorf("the insert: %v", r.Status)
	}
}
