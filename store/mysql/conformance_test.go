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
	"github.com/redlatch/redlatch/store/casnode"
	"github.com/redlatch/redlatch/store/casnode/casnodetest"
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
	status    string   // the table of the server's counters
	limit     func(time.Duration) string
}

var (
	mariaDB = product{"MariaDB", servertest.MariaDB, servertest.OwnMariaDB, nil, "MASTER_USE_GTID = slave_pos", "tx_isolation", "ORACLE", "information_schema.global_status",
		func(d time.Duration) string { return fmt.Sprintf("max_statement_time=%.3f", d.Seconds()) }}
	mySQL = product{"MySQL", servertest.MySQL, servertest.OwnMySQL, []string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON"}, "MASTER_AUTO_POSITION = 1", "transaction_isolation", "ANSI", "performance_schema.global_status",
		// It limits no statement that writes, but how long it waits.
		func(d time.Duration) string { return fmt.Sprintf("innodb_lock_wait_timeout=%.0f", max(1, d.Seconds())) }}
)

func onBoth(t *testing.T, f func(*testing.T, product)) {
	for _, p := range []product{mariaDB, mySQL} {
		t.Run(p.name, func(t *testing.T) { f(t, p) })
	}
}

func TestConformance(t *testing.T) { conformance(t, mariaDB) }

func TestConformanceOfMySQL(t *testing.T) { conformance(t, mySQL) }

// TestNodeIsMarkedWhereAnEmptyStringIsNull marks a node under the mode of Oracle that
// turns an empty string into NULL: the marker's name is empty.
func TestNodeIsMarkedWhereAnEmptyStringIsNull(t *testing.T) {
	n := openedOn(t, servertest.MariaDB(t)+"?sql_mode=%27ORACLE,EMPTY_STRING_IS_NULL%27", "marked")
	guard := node.Guard{Membership: "0123456789abcdef", Nodes: "n", MaxTTL: time.Minute, Window: 10 * time.Second, Quarantine: time.Minute}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if r, err := n.Mark(ctx, node.MarkRequest{Mark: node.MarkFresh, Guard: &guard}); err != nil || r.Guard == nil || r.Guard.Membership != guard.Membership {
		t.Fatalf("the mark: %+v, %v", r, err)
	}
	req := acquire("one")
	req.Guard = &guard
	granted(t, n, req)
	must(t, n.List(ctx, "", func(l node.Listing) {
		if l.Name != req.Name {
			t.Errorf("%q is listed", l.Name)
		}
	}))
}

// conformance runs the suite on a server, and on one like another.
func conformance(t *testing.T, p product) {
	dsn := p.shared(t)
	open := func(t testing.TB, dsn, table string) casnode.Store {
		n, err := mysql.Open(dsn, &mysql.Options{Table: table})
		must(t, err)
		return mysql.Store(n)
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
			return open(t, dsn, "conformance"), open(t, p.own(t).DSN(), "conformance")
		},
		Sweeps: true, Rings: true, Stamps: true, Places: true,
	})
}

// TestPlaceThatComesLateIsSeen puts a place under an old ticket where the queue has moved
// on: scans of it begin where it was a moment ago.
func TestPlaceThatComesLateIsSeen(t *testing.T) { onBoth(t, lateInLine) }

func lateInLine(t *testing.T, p product) {
	dsn := p.shared(t)
	first, other := mysql.Store(openedOn(t, dsn, "late")), mysql.Store(openedOn(t, dsn, "late"))
	for _, s := range []casnode.Store{first, other} {
		must(t, s.(casnode.Preparer).Prepare(t.Context()))
	}
	own := first.(casnode.Placer)
	place := func(ticket int64) casnode.Place {
		return casnode.Place{Name: "job", Waiter: fmt.Sprint(ticket), Process: "P" + p.name, Ticket: ticket}
	}
	_, err := own.Live(t.Context(), place(0).Process)
	must(t, err)
	put := func(ticket int64) (first int64) {
		s, err := own.Put(t.Context(), place(ticket), false)
		must(t, err)
		return s.Places[0].Ticket
	}
	for ticket := int64(10); ticket < 16; ticket++ { // the queue moves
		put(ticket)
		_, err := own.Drop(t.Context(), place(ticket-1))
		must(t, err)
		_, err = other.Read(t.Context(), "job")
		must(t, err)
	}
	if first := put(5); first != 5 {
		t.Errorf("the first one has the ticket %d, for the one with 5", first)
	}
	time.Sleep(1100 * time.Millisecond)
	if s, err := other.Read(t.Context(), "job"); err != nil || s.Places[0].Ticket != 5 {
		t.Errorf("%v, %v: want the ticket 5 first, for all", s.Places, err)
	}
	for late := true; late; { // a caller whose time ends just now is not served
		end := time.Now()
		leaves := casnode.Place{Name: "job", Waiter: fmt.Sprintf("0-0-%d-", end.UnixMicro()), Process: "P" + p.name, Ticket: 4}
		s, err := own.Put(t.Context(), leaves, false)
		if late = time.Since(end) > time.Second; !late && (err != nil || s.Places[0].Ticket != 5 || s.Rank != 1) {
			t.Errorf("%v, %v, rank %d: want the ticket 5 first, before the 4 that leaves", s.Places, err, s.Rank)
		}
		_, err = own.Drop(t.Context(), leaves)
		must(t, err)
	}
}
