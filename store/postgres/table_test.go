//go:build unix

package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// TestTableOfAnotherShapeIsRefused has tables that were made by hand, by a
// migration tool, or by a dump without its last part.
func TestTableOfAnotherShapeIsRefused(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	db := databaseAt(t, dsn)
	for _, c := range []struct{ name, create, says string }{
		{"no_key", `CREATE TABLE no_key (name bytea, version text, state bytea)`, "its key is missing and not (name)"},
		{"another_key", `CREATE TABLE another_key (name bytea, version text PRIMARY KEY, state bytea)`, "its key is missing and not (name)"},
		{"wide_key", `CREATE TABLE wide_key (name bytea, version text, state bytea, PRIMARY KEY (name, version))`, "its key is missing and not (name)"},
		{"partial_key", `CREATE TABLE partial_key (name bytea, version text, state bytea);
			CREATE UNIQUE INDEX ON partial_key (name) WHERE version > ''`, "its key is missing and not (name)"},
		{"folded", `CREATE TABLE folded (name text PRIMARY KEY, version text, state bytea)`, "its column name is text and not bytea"},
		{"former", `CREATE TABLE former (name bytea PRIMARY KEY, version bigint, state bytea)`, "its column version is int8 and not text"},
		{"a_view", `CREATE VIEW a_view AS SELECT ''::bytea AS name, ''::text AS version, ''::bytea AS state`, "its kind is view and not table"},
	} {
		exec(t, db, c.create)
		r, err := openAt(t, dsn, c.name).Do(t.Context(), node.Request{Op: node.OpAcquire, Name: "job", Value: "v", TTL: time.Minute})
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "redlatch schema postgres") {
			t.Errorf("%s: %v, %v; want an error that says %q", c.name, r.Status, err, c.says)
		}
	}
}

// TestTableThatAnotherMakesMeanwhileIsUsed has another client be about to make the first
// of the two tables, and end before it makes the second.
func TestTableThatAnotherMakesMeanwhileIsUsed(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	db := databaseAt(t, dsn)
	tx, err := db.Begin()
	must(t, err)
	_, err = tx.Exec("CREATE TABLE meanwhile (name bytea PRIMARY KEY, version text, state bytea)")
	must(t, err)
	got := answer(t, openAt(t, dsn, "meanwhile"), node.Request{Op: node.OpAcquire, Name: "job", Value: "v", TTL: time.Minute})
	until(t, db, blockedText)
	must(t, tx.Commit())
	if r := <-got; r.Status != node.Granted {
		t.Error(r.Status)
	}
}

// TestServerWithoutAConnectionLeftIsInACrowd is about the server and about PgBouncer.
func TestServerWithoutAConnectionLeftIsInACrowd(t *testing.T) {
	for _, e := range []pgconn.PgError{{Code: "53300"}, {Code: "08P01", Message: "no more connections allowed (max_client_conn)"}} {
		if err := postgres.Explain(&e); !errors.Is(err, node.ErrContended) || !errors.Is(err, node.ErrUnsent) {
			t.Error(err)
		}
	}
}

// TestKeyThatIsDroppedUnderAClientEndsItsInserts drops the key after the table was
// checked.
func TestKeyThatIsDroppedUnderAClientEndsItsInserts(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	n := openAt(t, dsn, "lost_key")
	acquire := func(name string) error {
		_, err := n.Do(t.Context(), node.Request{Op: node.OpAcquire, Name: name, Value: "v", TTL: time.Minute})
		return err
	}
	must(t, acquire("one"))
	exec(t, databaseAt(t, dsn), "ALTER TABLE lost_key DROP CONSTRAINT lost_key_pkey")
	if err := acquire("two"); err == nil || !strings.Contains(err.Error(), "redlatch schema postgres") {
		t.Errorf("an insert without a key: %v", err)
	}
}

// TestServerThatOnlyFollowsOrReadsSaysSo has a table that a logical subscription
// fills, and a user whose transactions are read-only.
func TestServerThatOnlyFollowsOrReadsSaysSo(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	db := databaseAt(t, server.DSN())
	try := func(parameters string) error {
		req := wanted(node.OpAcquire, "one")
		req.Guard = nil
		_, err := openAt(t, server.DSN()+parameters, "").Do(t.Context(), req)
		return err
	}
	must(t, try(""))
	if err := try("&default_transaction_read_only=on"); !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "default_transaction_read_only") || strings.Contains(err.Error(), "replica") {
		t.Errorf("transactions are read-only: %v", err)
	}
	exec(t, db, `CREATE SUBSCRIPTION follows CONNECTION 'host=127.0.0.1' PUBLICATION locks WITH (connect = false)`,
		`INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate) SELECT oid, 'redlatch_lock'::regclass, 'r' FROM pg_subscription`)
	if err := try(""); !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "subscription") {
		t.Errorf("the table of a subscriber: %v", err)
	}
}
