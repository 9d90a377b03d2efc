package system

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"cirello.io/pglock"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/fresh"
	"github.com/redlatch/redlatch/mysql"
	"github.com/redlatch/redlatch/postgres"
)

// Databases are the contenders that keep their locks in a database.
var Databases = []*System{
	{
		Key: "redlatch-postgres", Title: "redlatch on PostgreSQL", Kind: Ours, Store: Postgres, Nodes: one, Keeps: true,
		Note: "`postgres.Open`, zero options but the TTL: lease, token, restart guard, queue in order, wakes by NOTIFY",
		Open: openOnDatabase(postgresURL, func(url string) (redlatch.Node, error) { return postgres.Open(url) }),
	},
	{
		Key: "pg-advisory", Title: "pg_advisory_lock", Kind: Peer, Store: Postgres, Nodes: one,
		Note: "the database's own lock of a session, over pgx, with a connection for each holder and each waiter: no TTL, no token; it ends with the connection, and does not work through a pooler in transaction mode",
		Open: openSession("pgx", postgresURL, "SELECT pg_advisory_lock(hashtextextended($1, 0))", "SELECT pg_advisory_unlock(hashtextextended($1, 0))"),
	},
	{
		Key: "pglock", Title: "cirello.io/pglock", Kind: Peer, Store: Postgres, Nodes: one, Keeps: true,
		Note: "over pgx, with the TTL as its lease and a heartbeat every third of it; a waiter asks again after a whole lease, by its nature",
		Open: openPglock,
	},
	{
		Key: "shedlock-postgres", Title: "ShedLock's statements on PostgreSQL", Kind: Peer, Store: Postgres, Nodes: one,
		Note: "the statements of its JDBC provider, by the database's clock, over pgx; it does not wait, so the bench asks again every 100 ms; no token",
		Open: openShedLock("pgx", postgresURL, shedLockPostgres),
	},
	{
		Key: "redlatch-mariadb", Title: "redlatch on MariaDB", Kind: Ours, Store: MariaDB, Nodes: one, Keeps: true,
		Note: "`mysql.Open`, zero options but the TTL: lease, token, restart guard, queue in order; waiters poll by rank",
		Open: openOnDatabase(mariaURL, func(url string) (redlatch.Node, error) { return mysql.Open(url) }),
	},
	{
		Key: "get-lock", Title: "GET_LOCK", Kind: Peer, Store: MariaDB, Nodes: one,
		Note: "the database's own lock of a session, with a connection for each holder and each waiter: no TTL, no token; it ends with the connection",
		Open: openSession("mysql", mariaDSN, "SELECT GET_LOCK(?, 3600)", "SELECT RELEASE_LOCK(?)"),
	},
	{
		Key: "shedlock-mariadb", Title: "ShedLock's statements on MariaDB", Kind: Peer, Store: MariaDB, Nodes: one,
		Note: "as on PostgreSQL",
		Open: openShedLock("mysql", mariaDSN, shedLockMaria),
	},
}

func postgresURL(address string) string {
	return "postgres://postgres@" + address + "/postgres?sslmode=disable"
}
func mariaURL(address string) string { return "mysql://root@" + address + "/test" }

// mariaDSN has a statement take one round trip, as redlatch does.
func mariaDSN(address string) string { return "root@tcp(" + address + ")/test?interpolateParams=true" }

func openOnDatabase(url func(string) string, open func(url string) (redlatch.Node, error)) func(context.Context, []string) (Locker, error) {
	return func(_ context.Context, addresses []string) (Locker, error) {
		n, err := open(url(addresses[0]))
		if err != nil {
			return nil, err
		}
		c, err := redlatch.New([]redlatch.Node{n}, plainOptions())
		if err != nil {
			return nil, err
		}
		return redlatchLocker{c}, nil
	}
}

// PrepareDatabase declares a new database to be new, as an operator does once.
func PrepareDatabase(ctx context.Context, store Store, addresses []string) error {
	i := slices.IndexFunc(Databases, func(s *System) bool { return s.Kind == Ours && s.Store == store })
	l, err := Databases[i].Open(ctx, addresses)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := fresh.Declare(ctx, l.(redlatchLocker).client); err != nil {
		return fmt.Errorf("declaring the database new: %w", err)
	}
	return nil
}

// sessionLocker takes the lock of a session: its connection is kept until the
// release.
type sessionLocker struct {
	db            *sql.DB
	lock, release string
}

func openSession(driver string, dsn func(string) string, lock, release string) func(context.Context, []string) (Locker, error) {
	return func(_ context.Context, addresses []string) (Locker, error) {
		db, err := openSQL(driver, dsn(addresses[0]))
		return &sessionLocker{db, lock, release}, err
	}
}

func openSQL(driver, dsn string) (*sql.DB, error) {
	db, err := sql.Open(driver, dsn)
	if err == nil {
		db.SetMaxIdleConns(64) // none is closed and made anew between two locks
	}
	return db, err
}

func (l *sessionLocker) Lock(ctx context.Context, name string) (Held, error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, l.lock, name); err != nil {
		conn.Close()
		return nil, err
	}
	return heldFunc(func(ctx context.Context) error {
		defer conn.Close()
		_, err := conn.ExecContext(ctx, l.release, name)
		return err
	}), nil
}

func (l *sessionLocker) Close() { l.db.Close() }

type pglockLocker struct {
	db     *sql.DB
	client *pglock.Client
}

func openPglock(_ context.Context, addresses []string) (Locker, error) {
	db, err := openSQL("pgx", postgresURL(addresses[0]))
	if err != nil {
		return nil, err
	}
	c, err := pglock.UnsafeNew(db, pglock.WithLeaseDuration(TTL), pglock.WithHeartbeatFrequency(TTL/3))
	if err == nil {
		err = created(c.TryCreateTable)
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return &pglockLocker{db, c}, nil
}

// created creates a table, unless another contender does so now.
func created(create func() error) (err error) {
	for range 10 {
		if err = create(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond) // there is no event to wait for
	}
	return err
}

func (l *pglockLocker) Lock(ctx context.Context, name string) (Held, error) {
	lock, err := l.client.AcquireContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return heldFunc(func(ctx context.Context) error { return l.client.ReleaseContext(ctx, lock) }), nil
}

func (l *pglockLocker) Close() { l.db.Close() }

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

// shedLockPause is how often one who waits asks.
const shedLockPause = 100 * time.Millisecond

type shedLockLocker struct {
	db *sql.DB
	shedLock
}

func openShedLock(driver string, dsn func(string) string, s shedLock) func(context.Context, []string) (Locker, error) {
	return func(ctx context.Context, addresses []string) (Locker, error) {
		db, err := openSQL(driver, dsn(addresses[0]))
		if err == nil {
			err = created(func() error { _, err := db.ExecContext(ctx, s.table); return err })
		}
		return &shedLockLocker{db, s}, err
	}
}

func (l *shedLockLocker) Lock(ctx context.Context, name string) (Held, error) {
	owner := newValue()
	for {
		for _, statement := range l.lock {
			r, err := l.db.ExecContext(ctx, statement, TTL.Microseconds(), owner, name)
			if err != nil {
				return nil, err
			}
			if n, err := r.RowsAffected(); err != nil {
				return nil, err
			} else if n > 0 {
				return heldFunc(func(ctx context.Context) error {
					_, err := l.db.ExecContext(ctx, l.free, name, owner)
					return err
				}), nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(shedLockPause):
		}
	}
}

func (l *shedLockLocker) Close() { l.db.Close() }
