//go:build unix

package postgres_test

import (
	"os"
	"testing"

	"github.com/redlatch/redlatch/internal/sqltest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/nodetest"
	"github.com/redlatch/redlatch/postgres"
)

func TestMain(m *testing.M) { os.Exit(sqltest.Main(m)) }

func TestConformance(t *testing.T) {
	conforms(t, sqltest.PostgreSQL(t), nodetest.Harness{Wakes: true}, postgres.Options{})
}

func TestConformanceOfWaitersThatPoll(t *testing.T) {
	conforms(t, sqltest.PostgreSQL(t), nodetest.Harness{}, postgres.Options{Poll: true, Table: "polled"})
}

func TestConformanceBehindAPooler(t *testing.T) {
	conforms(t, sqltest.PgBouncer(t), nodetest.Harness{}, postgres.Options{Table: "pooled"})
}

// conforms runs the suite on a database.
func conforms(t *testing.T, dsn string, h nodetest.Harness, opts postgres.Options) {
	h.Open = func(t testing.TB) (a, b node.Node) {
		open := func() node.Node {
			n, err := postgres.New(dsn, opts)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		return open(), open()
	}
	h.Queues, h.Shares, h.Marks, h.Lists = true, true, true, true
	nodetest.Run(t, h)
}
