//go:build unix

package mysql_test

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
	"github.com/redlatch/redlatch/node/casnode/casnodetest"
	"github.com/redlatch/redlatch/store/mysql"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

func TestConformance(t *testing.T) {
	conformance(t, "conformance", "")
}

// TestConformanceWhereAnEmptyStringIsNull runs the suite under the mode of Oracle
// that turns ” into NULL.
func TestConformanceWhereAnEmptyStringIsNull(t *testing.T) {
	conformance(t, "empty_is_null", "?sql_mode=%27ORACLE,EMPTY_STRING_IS_NULL%27")
}

// TestNodeIsMarkedWhereAnEmptyStringIsNull marks a node: the marker's name is
// empty.
func TestNodeIsMarkedWhereAnEmptyStringIsNull(t *testing.T) {
	n, err := mysql.Open(servertest.MariaDB(t)+"?sql_mode=%27EMPTY_STRING_IS_NULL%27", &mysql.Options{Table: "marked"})
	must(t, err)
	defer n.Close()
	guard := node.Guard{Membership: "0123456789abcdef", Nodes: "n", MaxTTL: time.Minute, Window: 10 * time.Second, Quarantine: time.Minute}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if r, err := n.Do(ctx, node.Request{Op: node.OpMark, Mark: node.MarkFresh, Guard: &guard}); err != nil || r.Guard == nil || r.Guard.Membership != guard.Membership {
		t.Fatalf("the mark: %+v, %v", r, err)
	}
	req := acquire("one")
	req.Guard = &guard
	if r, err := n.Do(ctx, req); err != nil || r.Status != node.Granted {
		t.Errorf("%v, %v; want granted", r.Status, err)
	}
}

func conformance(t *testing.T, table, parameters string) {
	dsn := servertest.MariaDB(t) + parameters
	open := func(t testing.TB, dsn, table string) casnode.Store {
		n, err := mysql.Open(dsn, &mysql.Options{Table: table})
		must(t, err)
		return mysql.Store(n)
	}
	casnodetest.Run(t, casnodetest.Harness{
		Open: func(t testing.TB) (a, b casnode.Store) { return open(t, dsn, table), open(t, dsn, table) },
		Unprepared: func(t testing.TB) (a, b casnode.Store) {
			table := "fresh_" + strings.ToLower(rand.Text())
			return open(t, dsn, table), open(t, dsn, table)
		},
		Apart: func(t testing.TB) (a, b casnode.Store) {
			return open(t, dsn, table), open(t, servertest.OwnMariaDB(t).DSN()+parameters, table)
		},
		Sweeps: true, Stamps: true, // MySQL sends no notifications: it is no Hearer
	})
}
