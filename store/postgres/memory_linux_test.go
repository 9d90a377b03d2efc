package postgres_test

import (
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/rowtest"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node/casnode"
	"github.com/redlatch/redlatch/store/postgres"
)

// TestWritesWithoutARead has requests that nobody contends for.
func TestWritesWithoutARead(t *testing.T) {
	server, clock := servertest.OwnWithClock(t, servertest.NewPostgreSQL("-c", "shared_preload_libraries=pg_stat_statements"))
	if _, err := databaseAt(t, server.DSN()).Exec(`CREATE EXTENSION pg_stat_statements`); err != nil {
		t.Fatal(err)
	}
	rowtest.Memory{
		Server: server, Clock: clock,
		Open: func(t testing.TB, dsn string) *casnode.Node {
			n, err := postgres.Open(dsn, &postgres.Options{Poll: true})
			check.Must(t, err)
			return n.Node
		},
		Driver:     "pgx",
		Statements: `SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements`,
	}.Run(t)
}
