//go:build unix

package postgres_test

import (
	"context"
	"database/sql"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/redlatch/redlatch/internal/test/rowtest"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

func TestFaults(t *testing.T) {
	rowtest.Run(t, rowtest.Harness{
		Start:  servertest.OwnPostgreSQL,
		Follow: follow,
		Open:   open,
		Driver: "pgx",

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
	config, err := pgxpool.ParseConfig(dsn)
	must(t, err)
	if s.Pool > 0 {
		config.MaxConns = int32(s.Pool)
	}
	if s.Timeout > 0 {
		config.ConnConfig.RuntimeParams["statement_timeout"] = strconv.FormatInt(s.Timeout.Milliseconds(), 10)
	}
	if s.Serializable {
		config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	must(t, err)
	t.Cleanup(pool.Close)
	n, err := postgres.From(pool, &postgres.Options{Poll: true, Name: s.Name})
	must(t, err)
	return n
}

// follow waits until the replica has what is there already.
func follow(t testing.TB, primary *servertest.OwnDatabase) (*servertest.OwnDatabase, func()) {
	replica := primary.Replica()
	db, err := sql.Open("pgx", replica.DSN())
	must(t, err)
	t.Cleanup(func() { db.Close() })
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var streams bool
		err := db.QueryRow(`SELECT EXISTS (SELECT 1 FROM pg_stat_wal_receiver WHERE status = 'streaming')`).Scan(&streams)
		if err == nil && streams {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the replica does not follow: %v", err)
		}
	}
	return replica, func() {
		if _, err := db.Exec(`SELECT pg_promote()`); err != nil {
			t.Fatal(err)
		}
	}
}

func BenchmarkReaders(b *testing.B) {
	rowtest.Readers(b, open(b, servertest.OwnPostgreSQL(b).DSN(), rowtest.Settings{}))
}
