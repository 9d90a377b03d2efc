//go:build unix

package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// TestUsersWithSchemasOfTheirOwnShareATable has two users with a schema of their own,
// which is first in their search path.
func TestUsersWithSchemasOfTheirOwnShareATable(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	db := databaseAt(t, dsn)
	acquire := func(user, table string) (node.Status, error) {
		r, err := openAt(t, strings.Replace(dsn, "postgres@", user+"@", 1), table).Do(t.Context(), node.Request{Op: node.OpAcquire, Name: "job", Value: user, TTL: time.Minute})
		return r.Status, err
	}
	for _, user := range []string{"alice", "bob"} {
		exec(t, db, "CREATE ROLE "+user+" LOGIN", "CREATE SCHEMA "+user+" AUTHORIZATION "+user,
			"GRANT EXECUTE ON FUNCTION pg_control_system() TO "+user)
	}

	for _, user := range []string{"alice", "bob"} { // neither may create it
		_, err := acquire(user, "one_for_all")
		if err == nil || !strings.Contains(err.Error(), "redlatch schema postgres") || !strings.Contains(err.Error(), "table=SCHEMA.NAME") {
			t.Errorf("%s, without a right to create the table: %v", user, err)
		}
	}
	exec(t, db, "GRANT CREATE ON SCHEMA public TO alice")
	if got, err := acquire("alice", "one_for_all"); err != nil || got != node.Granted {
		t.Fatalf("alice: %v, %v", got, err)
	}
	if got, err := acquire("bob", "one_for_all"); err == nil || !strings.Contains(err.Error(), "grant the rights") {
		t.Errorf("bob, without a right to alice's table: %v, %v", got, err)
	}
	exec(t, db, "GRANT SELECT, INSERT, UPDATE ON public.one_for_all, public.one_for_all_place TO bob")
	for _, table := range []string{"one_for_all", "public.one_for_all"} {
		if got, err := acquire("bob", table); err != nil || got != node.Held {
			t.Errorf("bob, beside alice, in %s: %v, %v; want held", table, got, err)
		}
	}
	if got, err := acquire("bob", "bob.one_for_all"); err != nil || got != node.Granted {
		t.Errorf("bob, in a table that he names: %v, %v", got, err)
	}
}

// TestOneTableHasOneName has the default schema be named, and not.
func TestOneTableHasOneName(t *testing.T) {
	name := func(table string) string {
		n, err := postgres.Open("postgres://locks@db.internal/app", &postgres.Options{Table: table})
		must(t, err)
		defer n.Close()
		schema, err := postgres.Schema(table)
		must(t, err)
		return n.String() + " " + schema
	}
	for _, table := range []string{"redlatch_lock", "public.redlatch_lock"} {
		if got, want := name(table), name(""); got != want {
			t.Errorf("the table %s is %s, and the default %s", table, got, want)
		}
	}
	if name("ops.redlatch_lock") == name("") {
		t.Error("the table of another schema is not another one")
	}
}
