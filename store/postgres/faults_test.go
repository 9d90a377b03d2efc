//go:build unix

package postgres_test

import (
	"database/sql"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/redlatch/redlatch/internal/test/rowtest"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

func TestFaults(t *testing.T) {
	rowtest.All.Run(t, rowtest.Harness{
		Start:   servertest.OwnPostgreSQL,
		Follow:  follow,
		Open:    open,
		Between: between,
		Driver:  "pgx",

		LockRow: `SELECT 1 FROM redlatch_lock WHERE name = $1 FOR UPDATE`,
		Waiting: `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`,
		KillWaiting: func(t testing.TB, db *sql.DB) {
			var killed int
			err := db.QueryRow(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`).Scan(&killed)
			if err != nil || killed != 1 {
				t.Errorf("%d sessions were killed, %v; want 1", killed, err)
			}
		},
		FillDisk: []string{
			`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
			$$BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END$$`,
			`CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON redlatch_lock FOR EACH ROW EXECUTE FUNCTION full_disk()`,
		},
		EmptyDisk: []string{`DROP TRIGGER full_disk ON redlatch_lock`},
	})
}

func open(t testing.TB, dsn string, s rowtest.Settings) node.Node {
	if s.Timeout > 0 {
		dsn += "&statement_timeout=" + strconv.FormatInt(s.Timeout.Milliseconds(), 10)
	}
	if s.Serializable {
		dsn += "&default_transaction_isolation=serializable"
	}
	return openAt(t, dsn, "")
}

// between is behind a pooler, which has found its connections broken when the client
// goes on.
func between(t testing.TB, _ *servertest.OwnDatabase, at string, between func()) node.Node {
	dsn := servertest.OwnPgBouncer(t, at).DSN()
	pool, err := pgxpool.New(t.Context(), dsn)
	must(t, err)
	t.Cleanup(pool.Close)
	n, err := postgres.OverPaused(pool, postgres.Options{Poll: true}, func() {
		between()
		until(t, databaseAt(t, dsn), `SELECT true`)
	})
	must(t, err)
	return n
}

func follow(t testing.TB, primary *servertest.OwnDatabase) (replica *servertest.OwnDatabase, stop, promote func()) {
	replica = primary.Replica()
	db := databaseAt(t, replica.DSN())
	until(t, db, `SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')`)
	stop = func() {
		exec(t, db, `ALTER SYSTEM SET primary_conninfo = ''`, `SELECT pg_reload_conf()`)
		until(t, db, `SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)`)
	}
	return replica, stop, func() { exec(t, db, `SELECT pg_promote()`) }
}

// TestWritesWithoutARead has requests that nobody contends for.
func TestWritesWithoutARead(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	dsn := server.DSN()
	exec(t, databaseAt(t, dsn), `ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'`)
	server.Kill()
	server.Restart()
	exec(t, databaseAt(t, dsn), `CREATE EXTENSION pg_stat_statements`)
	rowtest.Count(t, "pgx", dsn, `SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE query NOT IN ('BEGIN', 'COMMIT')`, func() node.Node { return openAt(t, dsn, "") })
}
