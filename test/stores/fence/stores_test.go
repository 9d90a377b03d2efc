//go:build unix

package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	goredisclient "github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"
	_ "modernc.org/sqlite"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/goredis"
	"github.com/redlatch/redlatch/store/redis/rueidis"
)

// database is a real database and how it is reached.
type database struct {
	name    string
	dialect fence.Dialect
	driver  string
	dsn     func(t testing.TB) string
	waiting string // a query for the number of transactions that wait for a lock
}

func (d database) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.dsn(t))
	must(t, err)
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(8)
	return db
}

var (
	sqliteDB = database{"sqlite", fence.SQLite, "sqlite", sqliteFile, ""}
	mariaDB  = database{"mariadb", fence.MySQL, "mysql", servertest.MariaDB,
		"SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'"}
	mySQLDB = database{"mysql", fence.MySQL, "mysql", servertest.MySQL,
		"SELECT variable_value FROM performance_schema.global_status WHERE variable_name = 'Innodb_row_lock_current_waits'"}
	postgresDB = database{"postgresql", fence.PostgreSQL, "pgx", servertest.PostgreSQL,
		"SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"}

	databases = []database{sqliteDB, mariaDB, mySQLDB, postgresDB}

	// The same with driver settings that change the requests or the replies.
	variants = []database{
		{"mariadb with found rows and no prepared statements", fence.MySQL, "mysql", func(t testing.TB) string {
			return servertest.MariaDB(t) + "?clientFoundRows=true&interpolateParams=true"
		}, mariaDB.waiting},
		{"mariadb with simultaneous assignments", fence.MySQL, "mysql", func(t testing.TB) string {
			return servertest.MariaDB(t) + "?sql_mode=%27SIMULTANEOUS_ASSIGNMENT%27"
		}, mariaDB.waiting},
		{"postgresql with the simple protocol", fence.PostgreSQL, "pgx", func(t testing.TB) string {
			return servertest.PostgreSQL(t) + "&default_query_exec_mode=simple_protocol"
		}, postgresDB.waiting},
	}
)

func sqliteFile(t testing.TB) string {
	t.Helper()
	dsn := "file:" + filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)"
	// The journal mode stays with the file. Several connections that set it at
	// once get SQLITE_BUSY, even with a timeout, so the first sets it alone.
	db, err := sql.Open("sqlite", dsn)
	must(t, err)
	defer db.Close()
	must(t, db.Ping())
	return dsn
}

var must = check.Must

func newGate(t testing.TB) *fence.Gate {
	t.Helper()
	gate, err := fence.NewGate(nil)
	must(t, err)
	return gate
}

func wantStale(t testing.TB, err error, token, highest redlatch.Token) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.As(err, &stale) || !errors.Is(err, fence.ErrStale) {
		t.Fatalf("got %v, want ErrStale", err)
	}
	if stale.Token != token || stale.Highest != highest {
		t.Fatalf("got %v, want token %d and highest %d", err, uint64(token), uint64(highest))
	}
}

var tables atomic.Int64

// newTable returns a name that no other test uses.
func newTable() string { return fmt.Sprintf("t%d_%d", os.Getpid(), tables.Add(1)) }

func mustExec(t testing.TB, db fence.Execer, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func newSQL(t testing.TB, d database, db *sql.DB) *fence.SQL {
	t.Helper()
	guard, err := fence.NewSQL(db, d.dialect, &fence.SQLOptions{Table: newTable()})
	must(t, err)
	must(t, guard.Create(context.Background()))
	return guard
}

// redisClients are ways to speak to a server: both drivers, both protocols.
var redisClients = map[string]func(t testing.TB, addr string) redis.Driver{
	"rueidis, RESP2": func(t testing.TB, addr string) redis.Driver { return rueidisDriver(t, addr, true) },
	"rueidis, RESP3": func(t testing.TB, addr string) redis.Driver { return rueidisDriver(t, addr, false) },
	"goredis, RESP2": func(t testing.TB, addr string) redis.Driver { return goredisDriver(t, addr, 2) },
	"goredis, RESP3": func(t testing.TB, addr string) redis.Driver { return goredisDriver(t, addr, 3) },
}

func rueidisDriver(t testing.TB, addr string, resp2 bool) redis.Driver {
	t.Helper()
	client, err := rueidisclient.NewClient(rueidisclient.ClientOption{InitAddress: []string{addr}, AlwaysRESP2: resp2, DisableCache: true})
	must(t, err)
	t.Cleanup(client.Close)
	driver, err := rueidis.Driver(client)
	must(t, err)
	return driver
}

func goredisDriver(t testing.TB, addr string, protocol int) redis.Driver {
	t.Helper()
	client := goredisclient.NewClient(&goredisclient.Options{Addr: addr, Protocol: protocol})
	t.Cleanup(func() { client.Close() })
	driver, err := goredis.Driver(client)
	must(t, err)
	return driver
}

func newRedis(t testing.TB, driver redis.Driver) *fence.Redis {
	t.Helper()
	guard, err := fence.NewRedis(driver, nil)
	must(t, err)
	return guard
}

// store is a guard as the tests see it.
type store struct {
	fence.ReadGuard
	// highest returns the token that is kept for a resource.
	highest func(resource string) (redlatch.Token, error)
	// put sets that token, and nothing else that is kept; nil if there is nothing else.
	put func(resource string, token redlatch.Token) error
}

// eachStore runs a test on every guard, and on everything else that follows
// its rule: a token column, a server behind the middleware.
func eachStore(t *testing.T, test func(t *testing.T, s store)) {
	ctx := context.Background()
	t.Run("gate", func(t *testing.T) {
		gate := newGate(t)
		test(t, store{gate, func(r string) (redlatch.Token, error) { return gate.Highest(r), nil }, nil})
	})
	t.Run("http", func(t *testing.T) {
		gate := newGate(t)
		test(t, store{newHTTPGuard(t, gate), func(r string) (redlatch.Token, error) { return gate.Highest(r), nil }, nil})
	})
	for _, d := range append(databases, variants...) {
		t.Run(d.name, func(t *testing.T) {
			db, table := d.open(t), newTable()
			guard, err := fence.NewSQL(db, d.dialect, &fence.SQLOptions{Table: table})
			must(t, err)
			must(t, guard.Create(ctx))
			test(t, store{guard, func(r string) (redlatch.Token, error) { return guard.Highest(ctx, r) }, func(r string, token redlatch.Token) error {
				db.Exec("INSERT INTO "+table+" (resource, token) VALUES ("+first(d.dialect)+", 0)", r) // if it is new
				_, err := db.Exec(fmt.Sprintf("UPDATE %s SET token = %d WHERE resource = %s", table, token, first(d.dialect)), r)
				return err
			}})
		})
		t.Run("column in "+d.name, func(t *testing.T) {
			guard := newColumnGuard(t, d)
			test(t, store{guard, guard.highest, nil})
		})
	}
	server := servertest.Redis(t, 1)[0]
	for name, open := range redisClients {
		t.Run(name, func(t *testing.T) {
			server.Do("FLUSHALL")
			guard := newRedis(t, open(t, server.Addr()))
			test(t, store{guard, func(r string) (redlatch.Token, error) {
				v, err := guard.Get(ctx, r)
				return v.Highest, err
			}, func(r string, token redlatch.Token) error {
				server.Do("SET", "fence:{"+r+"}:token", token.String())
				return nil
			}})
		})
	}
}

// httpGuard claims resources over HTTP, from a server behind the middleware.
type httpGuard struct {
	client *http.Client
	url    string
}

func newHTTPGuard(t testing.TB, guard fence.Guard) httpGuard {
	t.Helper()
	wrap, err := fence.Middleware(guard, &fence.MiddlewareOptions{
		Resource: func(r *http.Request) string { return r.URL.Query().Get("resource") },
	})
	must(t, err)
	server := httptest.NewServer(wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := fence.TokenFrom(r.Context())
		fmt.Fprint(w, uint64(token), fence.IsReader(r.Context()))
	})))
	t.Cleanup(server.Close)
	return httpGuard{&http.Client{Transport: &fence.Transport{}}, server.URL}
}

func (g httpGuard) Check(ctx context.Context, resource string, token redlatch.Token) error {
	return g.send(fence.WithToken(ctx, token), "POST", resource, fmt.Sprint(uint64(token), false))
}

func (g httpGuard) CheckRead(ctx context.Context, resource string, token redlatch.Token) error {
	return g.send(fence.WithReadToken(ctx, token), "GET", resource, fmt.Sprint(uint64(token), true))
}

// send sends a request, and compares what reached the handler.
func (g httpGuard) send(ctx context.Context, method, resource, want string) error {
	req, err := http.NewRequestWithContext(ctx, method, g.url+"?resource="+url.QueryEscape(resource), nil)
	if err != nil {
		return err
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := fence.ResponseError(resp); err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusBadRequest:
		return fmt.Errorf("%w: %s", redlatch.ErrConfig, body)
	case string(body) != want:
		return fmt.Errorf("%s reached the handler as %s", want, body)
	}
	return nil
}

// columnGuard claims resources that are rows with a token column.
type columnGuard struct {
	db     *sql.DB
	column *fence.Column
	insert string
	read   string
}

func newColumnGuard(t testing.TB, d database) columnGuard {
	t.Helper()
	db, table := d.open(t), newTable()
	g := columnGuard{db: db}
	var err error
	if g.column, err = fence.NewColumn(d.dialect, table, "id", "token"); err != nil {
		t.Fatal(err)
	}
	key := map[fence.Dialect]string{fence.SQLite: "TEXT", fence.MySQL: "VARBINARY(255)", fence.PostgreSQL: "text"}[d.dialect]
	mustExec(t, db, "CREATE TABLE "+table+" (id "+key+" PRIMARY KEY, payload TEXT, token BIGINT, token_reader BIGINT, token_writer BIGINT)")
	into := " INTO " + table + " (id) VALUES (" + first(d.dialect) + ")"
	g.insert = map[fence.Dialect]string{
		fence.SQLite: "INSERT OR IGNORE" + into, fence.MySQL: "INSERT IGNORE" + into, fence.PostgreSQL: "INSERT" + into + " ON CONFLICT DO NOTHING",
	}[d.dialect]
	g.read = "SELECT token FROM " + table + " WHERE id = " + first(d.dialect)
	return g
}

func (g columnGuard) Check(ctx context.Context, resource string, token redlatch.Token) error {
	if err := g.row(ctx, resource); err != nil {
		return err
	}
	return g.column.Update(ctx, g.db, resource, token, "payload = 'x'")
}

func (g columnGuard) CheckRead(ctx context.Context, resource string, token redlatch.Token) error {
	if err := g.row(ctx, resource); err != nil {
		return err
	}
	return g.column.CheckRead(ctx, g.db, resource, token)
}

// row makes the row of a resource.
func (g columnGuard) row(ctx context.Context, resource string) error {
	if resource == "" || len(resource) > fence.MaxResourceLen {
		return redlatch.ErrConfig // the keys of rows depend on their table
	}
	_, err := g.db.ExecContext(ctx, g.insert, resource)
	return err
}

func (g columnGuard) highest(resource string) (redlatch.Token, error) {
	var token sql.NullInt64
	err := g.db.QueryRow(g.read, resource).Scan(&token)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return redlatch.Token(token.Int64), err
}
