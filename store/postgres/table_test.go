//go:build unix

package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// TestTableOfAnotherShapeIsRefused has tables that were made by hand, by a
// migration tool, or by a dump without its last part.
func TestTableOfAnotherShapeIsRefused(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer conn.Close(t.Context())
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
		if _, err := conn.Exec(t.Context(), c.create, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		n, err := postgres.Open(dsn, &postgres.Options{Poll: true, Table: c.name})
		must(t, err)
		r, err := n.Do(t.Context(), node.Request{Op: node.OpAcquire, Name: "job", Value: "v", TTL: time.Minute})
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "redlatch schema postgres") {
			t.Errorf("%s: %v, %v; want an error that says %q", c.name, r.Status, err, c.says)
		}
		n.Close()
	}
}

// TestKeyThatIsDroppedUnderAClientEndsItsInserts drops the key after the table was
// checked.
func TestKeyThatIsDroppedUnderAClientEndsItsInserts(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	n, err := postgres.Open(dsn, &postgres.Options{Poll: true, Table: "lost_key"})
	must(t, err)
	defer n.Close()
	acquire := func(name string) error {
		_, err := n.Do(t.Context(), node.Request{Op: node.OpAcquire, Name: name, Value: "v", TTL: time.Minute})
		return err
	}
	must(t, acquire("one"))
	conn, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "ALTER TABLE lost_key DROP CONSTRAINT lost_key_pkey"); err != nil {
		t.Fatal(err)
	}
	if err := acquire("two"); err == nil || !strings.Contains(err.Error(), "redlatch schema postgres") {
		t.Errorf("an insert without a key: %v", err)
	}
}

// TestTableThatIsDroppedUnderAClientIsMadeAgain drops and empties the table while a
// lock is held. The client goes on by itself, and does not trust the new table.
func TestTableThatIsDroppedUnderAClientIsMadeAgain(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer conn.Close(t.Context())
	guard := node.Guard{Membership: "list", MaxTTL: time.Minute, Window: time.Hour, Quarantine: 2 * time.Minute}
	for _, text := range []string{"DROP TABLE dropped", "TRUNCATE dropped", "DELETE FROM dropped"} {
		n, err := postgres.Open(dsn, &postgres.Options{Poll: true, Table: "dropped"})
		must(t, err)
		req := node.Request{Op: node.OpMark, Mark: node.MarkReplace, Guard: &guard}
		if _, err := n.Do(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		req = node.Request{Op: node.OpAcquire, Name: "job", Value: "v", TTL: time.Minute, Guard: &guard}
		if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Quarantined || r.Value != node.ReasonUnmarked {
			t.Errorf("after %s: %v (%s), %v; want quarantined, and unmarked", text, r.Status, r.Value, err)
		}
		n.Close()
	}
}

// TestLongNamesOfTablesNotifyToo has the longest names that are allowed: a waiter
// is notified, and the release does not fail.
func TestLongNamesOfTablesNotifyToo(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	schema, table := strings.Repeat("s", 63), strings.Repeat("t", 63)
	conn, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	n, err := postgres.Open(dsn, &postgres.Options{Table: schema + "." + table})
	must(t, err)
	defer n.Close()
	awaken(t, n)
}

// awaken has a waiter be notified. On a busy machine the connection that listens
// may miss its time limits, and notifications get lost. Then it tries again.
func awaken(t *testing.T, n *postgres.Node) {
	t.Helper()
	poll.Within(t, 2*poll.Patience, func() error { return notified(t.Context(), n, rand.Text()) })
}

// notified returns nil if a release notifies the waiter for a name.
func notified(ctx context.Context, n *postgres.Node, name string) error {
	woken := make(chan node.Wake, 100)
	defer n.Listen(func(w node.Wake) { woken <- w })()
	first := node.Request{Op: node.OpAcquire, Name: name, Value: "first", TTL: time.Minute, Retention: time.Minute}
	second := first
	second.Value, second.Wait = "second", true
	if r, err := n.Do(ctx, first); err != nil || r.Status != node.Granted {
		return fmt.Errorf("the holder: %v, %v", r.Status, err)
	}
	for r := (node.Reply{}); !r.Wakes; time.Sleep(20 * time.Millisecond) {
		var err error
		if r, err = n.Do(ctx, second); err != nil || r.Status != node.Held {
			return fmt.Errorf("the waiter: %v, %v", r.Status, err)
		}
	}
	first.Op = node.OpRelease
	if r, err := n.Do(ctx, first); err != nil || r.Status != node.Granted {
		return fmt.Errorf("a release with a waiter: %v, %v", r.Status, err)
	}
	for end := time.After(20 * time.Second); ; {
		select {
		case w := <-woken:
			if w.Kind == node.WakeTurn && w.Value == "second" {
				return nil
			}
		case <-end:
			return errors.New("the waiter was not notified")
		}
	}
}

// TestServerThatOnlyFollowsOrReadsSaysSo has a table that a logical subscription
// fills, and a user whose transactions are read-only.
func TestServerThatOnlyFollowsOrReadsSaysSo(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	db := operatorOf(t, server)
	try := func(parameters string) error {
		n, err := postgres.Open(server.DSN()+parameters, &postgres.Options{Poll: true})
		must(t, err)
		defer n.Close()
		req := wanted(node.OpAcquire, "one")
		req.Guard = nil
		_, err = n.Do(t.Context(), req)
		return err
	}
	must(t, try(""))
	if err := try("&default_transaction_read_only=on"); !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "default_transaction_read_only") || strings.Contains(err.Error(), "replica") {
		t.Errorf("transactions are read-only: %v", err)
	}
	for _, text := range []string{
		`CREATE SUBSCRIPTION follows CONNECTION 'host=127.0.0.1' PUBLICATION locks WITH (connect = false)`,
		`INSERT INTO pg_subscription_rel (srsubid, srrelid, srsubstate) SELECT oid, 'redlatch_lock'::regclass, 'r' FROM pg_subscription`,
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if err := try(""); !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "subscription") {
		t.Errorf("the table of a subscriber: %v", err)
	}
}
