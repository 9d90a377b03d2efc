package contender

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redlatch/redlatch/test/bench/clock"
	"github.com/redlatch/redlatch/test/bench/server"
)

// onDatabases are the contenders that keep their locks in a database.
var onDatabases = []*Contender{
	{Key: "redlatch-postgres", Title: "redlatch on PostgreSQL", Server: server.Postgres, Fixed: 1,
		Note: "`postgres.Open`, zero options but the TTL: lease, token, restart guard, queue in order, wakes by NOTIFY; a pool of 2 connections",
		Open: openRedlatch(server.Postgres, "&pool_max_conns=2", plain)},
	{Key: "pg-advisory", Title: "pg_advisory_lock", Server: server.Postgres, Native: true, Fixed: 1,
		Note: "the database's own lock of a session, over pgx, with a connection for each contender; a deadline is its lock_timeout; no TTL, no token",
		Open: openSession("pgx", postgresURL, lockAdvisory, "SELECT pg_advisory_unlock(hashtextextended($1, 0))")},
	{Key: "shedlock-postgres", Title: "ShedLock's statements on PostgreSQL", Server: server.Postgres, Fixed: 1,
		Note: "the statements of its JDBC provider, by the database's clock, over pgx; it does not wait, so the bench asks again every 100 ms; no token",
		Open: openShedLock("pgx", postgresURL, shedLockPostgres)},
	{Key: "redlatch-mariadb", Title: "redlatch on MariaDB", Server: server.MariaDB, Fixed: 1,
		Note: "`mysql.Open`, zero options but the TTL: lease, token, restart guard, queue in order",
		Open: openRedlatch(server.MariaDB, "", plain)},
	{Key: "get-lock", Title: "GET_LOCK", Server: server.MariaDB, Native: true, Fixed: 1,
		Note: "the database's own lock of a session, with a connection for each holder and each waiter: no TTL, no token; it ends with the connection",
		Open: openSession("mysql", mariaDSN, getLock, "SELECT RELEASE_LOCK(?)")},
	{Key: "shedlock-mariadb", Title: "ShedLock's statements on MariaDB", Server: server.MariaDB, Fixed: 1,
		Note: "as on PostgreSQL",
		Open: openShedLock("mysql", mariaDSN, shedLockMaria)},
}

func postgresURL(address string) string {
	return "postgres://postgres@" + address + "/postgres?sslmode=disable"
}

// mariaDSN makes a statement take one round trip, as redlatch does.
func mariaDSN(address string) string { return "root@tcp(" + address + ")/test?interpolateParams=true" }

// openSQL opens a contender on a database: first prepares the database, and lock
// returns what takes a lock.
func openSQL(driver, dsn string, first func(*sql.DB) error, lock func(ctx context.Context, db *sql.DB, name string) (Release, error)) (*Locker, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(64) // none is closed and made anew between two locks
	for range 10 {
		if err = first(db); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond) // another contender creates the same table now
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return &Locker{
		Lock:  func(ctx context.Context, name string) (Release, error) { return lock(ctx, db, name) },
		Close: func() { db.Close() },
	}, nil
}

// lockAdvisory and getLock leave a deadline to the server: a request that is given up
// would cost its connection.
func lockAdvisory(ctx context.Context, c *sql.Conn, name string) error {
	limit, args := "", []any{name}
	if deadline, limited := ctx.Deadline(); limited { // it is set when the same statement waits for the lock
		ctx, limit = context.WithoutCancel(ctx), "set_config('lock_timeout', $2, false), "
		args = append(args, fmt.Sprint(max(time.Until(deadline).Milliseconds(), 1)))
	}
	_, err := c.ExecContext(ctx, "SELECT "+limit+"pg_advisory_lock(hashtextextended($1, 0))", args...)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "55P03" {
		return context.DeadlineExceeded
	}
	return err
}

func getLock(ctx context.Context, c *sql.Conn, name string) error {
	wait := time.Hour
	if deadline, limited := ctx.Deadline(); limited {
		ctx, wait = context.WithoutCancel(ctx), max(time.Until(deadline), time.Millisecond)
	}
	var got bool
	err := c.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", name, wait.Seconds()).Scan(&got)
	if err == nil && !got {
		err = context.DeadlineExceeded
	}
	return err
}

// sessionLock takes a lock of a session.
type sessionLock func(ctx context.Context, c *sql.Conn, name string) error

// openSession opens locks of a session: its connection is kept until the
// release.
func openSession(driver string, dsn func(string) string, lock sessionLock, release string) func(context.Context, []string) (*Locker, error) {
	return func(_ context.Context, addresses []string) (*Locker, error) {
		return openSQL(driver, dsn(addresses[0]), (*sql.DB).Ping, func(ctx context.Context, db *sql.DB, name string) (Release, error) {
			conn, err := db.Conn(ctx)
			if err != nil {
				return nil, err
			}
			if err := lock(ctx, conn, name); err != nil {
				conn.Close()
				return nil, err
			}
			return func(ctx context.Context) error {
				defer conn.Close()
				_, err := conn.ExecContext(ctx, release, name)
				return err
			}, nil
		})
	}
}

// shedLock is the statements of ShedLock's JDBC provider.
type shedLock struct {
	table string
	lock  []string // until one of them changes a row; with TTL in µs, owner, name
	free  string   // with name, owner
}

var shedLockPostgres = shedLock{
	table: `CREATE TABLE IF NOT EXISTS shedlock (name VARCHAR(64) PRIMARY KEY, lock_until TIMESTAMP NOT NULL, locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL)`,
	lock: []string{`INSERT INTO shedlock (name, lock_until, locked_at, locked_by)
VALUES ($3, timezone('utc', CURRENT_TIMESTAMP) + $1 * interval '1 microsecond', timezone('utc', CURRENT_TIMESTAMP), $2)
ON CONFLICT (name) DO UPDATE SET lock_until = excluded.lock_until, locked_at = excluded.locked_at, locked_by = excluded.locked_by
WHERE shedlock.lock_until <= timezone('utc', CURRENT_TIMESTAMP)`},
	free: `UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) WHERE name = $1 AND locked_by = $2`,
}

var shedLockMaria = shedLock{
	table: `CREATE TABLE IF NOT EXISTS shedlock (name VARCHAR(64) PRIMARY KEY, lock_until TIMESTAMP(3) NOT NULL, locked_at TIMESTAMP(3) NOT NULL, locked_by VARCHAR(255) NOT NULL)`,
	lock: []string{
		`UPDATE shedlock SET lock_until = TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3)), locked_at = UTC_TIMESTAMP(3), locked_by = ? WHERE name = ? AND lock_until <= UTC_TIMESTAMP(3)`,
		`INSERT IGNORE INTO shedlock (lock_until, locked_at, locked_by, name) VALUES (TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3)), UTC_TIMESTAMP(3), ?, ?)`,
	},
	free: `UPDATE shedlock SET lock_until = UTC_TIMESTAMP(3) WHERE name = ? AND locked_by = ?`,
}

// shedLockPause is how often a waiter asks.
const shedLockPause = 100 * time.Millisecond

func openShedLock(driver string, dsn func(string) string, s shedLock) func(context.Context, []string) (*Locker, error) {
	create := func(db *sql.DB) error { _, err := db.Exec(s.table); return err }
	return func(_ context.Context, addresses []string) (*Locker, error) {
		return openSQL(driver, dsn(addresses[0]), create, func(ctx context.Context, db *sql.DB, name string) (Release, error) {
			owner := rand.Text()
			for {
				for _, statement := range s.lock {
					r, err := db.ExecContext(ctx, statement, TTL.Microseconds(), owner, name)
					if err != nil {
						return nil, err
					}
					if n, err := r.RowsAffected(); err != nil {
						return nil, err
					} else if n > 0 {
						return func(ctx context.Context) error {
							_, err := db.ExecContext(ctx, s.free, name, owner)
							return err
						}, nil
					}
				}
				if err := clock.Wait(ctx, shedLockPause); err != nil {
					return nil, err
				}
			}
		})
	}
}
