//go:build unix

package postgres_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// TestSweepPassesOverRowsThatAreInUse removes four rows of which one is locked, one
// has changed since, and one was never there.
func TestSweepPassesOverRowsThatAreInUse(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	db, n := databaseAt(t, dsn), openAt(t, dsn, "swept")
	for _, name := range []string{"over", "locked", "changed", "live"} {
		mustBe(t, n, node.Request{Op: node.OpAcquire, Name: name, Value: "one", TTL: time.Minute}, node.Granted)
	}
	begin(t, db, `SELECT FROM swept WHERE name = 'locked' FOR UPDATE`)
	change := func() { exec(t, db, `UPDATE swept SET version = 'other' WHERE name = 'changed'`) }
	must(t, postgres.Remove(t.Context(), n, change, "over", "locked", "changed", "missing"))
	var left string
	must(t, db.QueryRow(`SELECT string_agg(convert_from(name, 'UTF8'), ' ' ORDER BY name) FROM swept WHERE name <> ''`).Scan(&left))
	if left != "changed live locked" {
		t.Errorf("%q are left", left)
	}
}
