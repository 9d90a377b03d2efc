//go:build unix

package mysql_test

import (
	"context"
	"crypto/rand"
	"fmt"
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

// product is a server that the package is for, and what is other on it.
type product struct {
	name      string
	shared    func(testing.TB) string
	own       func(testing.TB, ...string) *servertest.OwnDatabase
	flags     []string // of servers that follow each other
	position  string   // where a replica goes on
	isolation string   // the variable
	mode      string   // the most unlike the default
	limit     func(time.Duration) string
}

var (
	mariaDB = product{"MariaDB", servertest.MariaDB, servertest.OwnMariaDB, nil, "MASTER_USE_GTID = slave_pos", "tx_isolation", "ORACLE",
		func(d time.Duration) string { return fmt.Sprintf("max_statement_time=%.3f", d.Seconds()) }}
	mySQL = product{"MySQL", servertest.MySQL, servertest.OwnMySQL, []string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON"}, "MASTER_AUTO_POSITION = 1", "transaction_isolation", "ANSI",
		// It limits no statement that writes, but how long it waits.
		func(d time.Duration) string { return fmt.Sprintf("innodb_lock_wait_timeout=%.0f", max(1, d.Seconds())) }}
)

func onBoth(t *testing.T, f func(*testing.T, product)) {
	for _, p := range []product{mariaDB, mySQL} {
		t.Run(p.name, func(t *testing.T) { f(t, p) })
	}
}

func TestConformance(t *testing.T) {
	conformance(t, servertest.MariaDB(t), servertest.OwnMariaDB, "conformance")
}

func TestConformanceOfMySQL(t *testing.T) {
	conformance(t, servertest.MySQL(t), servertest.OwnMySQL, "conformance")
}

// TestConformanceWhereAnEmptyStringIsNull runs the suite under the mode of Oracle
// that turns ” into NULL.
func TestConformanceWhereAnEmptyStringIsNull(t *testing.T) {
	const mode = "?sql_mode=%27ORACLE,EMPTY_STRING_IS_NULL%27"
	conformance(t, servertest.MariaDB(t)+mode, servertest.OwnMariaDB, "empty_is_null")
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

// conformance runs the suite on a server, and on one like another.
func conformance(t *testing.T, dsn string, other func(testing.TB, ...string) *servertest.OwnDatabase, table string) {
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
			return open(t, dsn, table), open(t, other(t).DSN(), table)
		},
		Sweeps: true, Stamps: true, // MySQL sends no notifications: it is no Hearer
	})
}
