//go:build unix

package postgres_test

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/nodetest"
	"github.com/redlatch/redlatch/store/casnode"
	"github.com/redlatch/redlatch/store/casnode/casnodetest"
	"github.com/redlatch/redlatch/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

func TestConformance(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	open := func(t testing.TB, dsn, table string) casnode.Store {
		n, err := postgres.Open(dsn, &postgres.Options{Table: table})
		must(t, err)
		return postgres.Store(n)
	}
	casnodetest.Run(t, casnodetest.Harness{
		Open: func(t testing.TB) (a, b casnode.Store) {
			return open(t, dsn, "conformance"), open(t, dsn, "conformance")
		},
		Unprepared: func(t testing.TB) (a, b casnode.Store) {
			table := "fresh_" + strings.ToLower(rand.Text())
			return open(t, dsn, table), open(t, dsn, table)
		},
		Apart: func(t testing.TB) (a, b casnode.Store) {
			return open(t, dsn, "conformance"), open(t, servertest.OwnPostgreSQL(t).DSN(), "conformance")
		},
		Sweeps: true, Hears: true, Stamps: true, Places: true,
	})
}

// TestConformanceBehindAPooler has a node that finds out that nothing is heard, so that
// its waiters poll.
func TestConformanceBehindAPooler(t *testing.T) {
	dsn := servertest.PgBouncer(t)
	open := func(t testing.TB) node.Node {
		n, err := postgres.Open(dsn, &postgres.Options{Table: "pooled"})
		must(t, err)
		return n
	}
	nodetest.Run(t, nodetest.Harness{
		Open:   func(t testing.TB) (a, b node.Node) { return open(t), open(t) },
		Places: true,
	})
}
