//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// servers are the ways to a server.
var servers = map[string]func(testing.TB) string{"direct": servertest.PostgreSQL, "pooler": servertest.PgBouncer}

// useAll executes every kind of statement.
func useAll(t *testing.T, n *postgres.Node, name string) {
	t.Helper()
	req := node.Request{Name: name, Value: "v", TTL: time.Minute, Fencing: node.Fencing{Retention: time.Minute, Window: time.Minute}}
	for _, op := range []node.Op{node.OpAcquire, node.OpExtend, node.OpComplete, node.OpCheck, node.OpRelease} {
		if op >= node.OpComplete {
			if r, err := n.Records(t.Context(), node.RecordsRequest{Op: op, Name: name, Occurrence: `o'\"`, Retention: time.Minute}); err != nil || r.Status != node.Granted {
				t.Errorf("%v of %q: %v, %v", op, name, r.Status, err)
			}
			continue
		}
		req.Op = op
		mustBe(t, n, req, node.Granted)
	}
	found := false
	req.Op = node.OpAcquire
	mustBe(t, n, req, node.Granted)
	if err := n.List(t.Context(), "", func(l node.Listing) { found = found || l.Name == name }); err != nil || !found {
		t.Errorf("%q is listed: %v, %v", name, found, err)
	}
}

// TestSettingsOfTheSessionChangeNothing has sessions with settings of their own,
// as a pooler hands them on from another client.
func TestSettingsOfTheSessionChangeNothing(t *testing.T) {
	for where, dsn := range servers {
		for _, setting := range []string{
			"DateStyle = 'SQL, DMY'", "bytea_output = 'escape'", "standard_conforming_strings = off", "IntervalStyle = 'sql_standard'",
			"TimeZone = 'Asia/Kathmandu'", "extra_float_digits = -15", "default_transaction_isolation = 'serializable'",
			"default_transaction_isolation = 'repeatable read'", "lock_timeout = 1", "synchronous_commit = off", "quote_all_identifiers = on",
			"client_encoding = 'SQL_ASCII'", "array_nulls = off", "transform_null_equals = on", "backslash_quote = off",
		} {
			t.Run(where+"/"+setting, func(t *testing.T) {
				// All sessions get the setting, as by another client of the pooler.
				config, err := pgxpool.ParseConfig(dsn(t))
				must(t, err)
				config.MaxConns = 2
				config.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
					_, err := conn.Exec(ctx, "SET "+setting, pgx.QueryExecModeSimpleProtocol)
					return err == nil, err
				}
				pool, err := pgxpool.NewWithConfig(t.Context(), config)
				must(t, err)
				defer pool.Close()
				n, err := postgres.From(pool, &postgres.Options{Poll: true, Table: "settings"})
				must(t, err)
				useAll(t, n, `job \x00 '"`+setting+where)
				if where == "pooler" { // other tests get these sessions
					for range 20 {
						pool.Exec(t.Context(), "RESET ALL", pgx.QueryExecModeSimpleProtocol)
					}
				}
			})
		}
	}
}

// TestNodeWorksWhateverTheDriverIsSetTo has connection strings that turn the
// driver's statement cache off, or choose another protocol.
func TestNodeWorksWhateverTheDriverIsSetTo(t *testing.T) {
	for where, dsn := range servers {
		for _, parameter := range []string{
			"statement_cache_capacity=0", "statement_cache_capacity=0&description_cache_capacity=0",
			"default_query_exec_mode=simple_protocol", "default_query_exec_mode=cache_statement", "default_query_exec_mode=describe_exec",
		} {
			t.Run(where+"/"+parameter, func(t *testing.T) {
				n, err := postgres.Open(dsn(t)+"&"+parameter, &postgres.Options{Table: "driver"})
				must(t, err)
				defer n.Close()
				useAll(t, n, where+parameter)
			})
		}
	}
}

// TestNothingIsLeftBehindOnASession compares a session before and after, on a pool
// that the program has, and behind a pooler.
func TestNothingIsLeftBehindOnASession(t *testing.T) {
	for where, dsn := range servers {
		t.Run(where, func(t *testing.T) {
			config, err := pgxpool.ParseConfig(dsn(t))
			must(t, err)
			config.MaxConns = 1
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			must(t, err)
			defer pool.Close()
			state := func() string {
				t.Helper()
				var all []string
				for range 8 { // a pooler has four sessions
					var prepared, locks int
					var settings string
					err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_prepared_statements),
						(SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype NOT IN ('virtualxid', 'relation')),
						(SELECT coalesce(string_agg(name || '=' || setting, ' ' ORDER BY name), '') FROM pg_settings WHERE source = 'session')`,
						pgx.QueryExecModeExec).Scan(&prepared, &locks, &settings)
					must(t, err)
					all = append(all, fmt.Sprint(prepared, locks, settings))
				}
				return strings.Join(all, "\n")
			}
			before := state()
			n, err := postgres.From(pool, &postgres.Options{Poll: true, Table: "traces"})
			must(t, err)
			for i := range 10 {
				useAll(t, n, fmt.Sprint("traces ", i))
			}
			if after := state(); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}
