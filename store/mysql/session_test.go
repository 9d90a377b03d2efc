//go:build unix

package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/mysql"
)

// opened returns a node with connections of its own.
func opened(t testing.TB, dsn string) *mysql.Node { return openedOn(t, dsn, "") }

// openedOn returns a node on a table.
func openedOn(t testing.TB, dsn, table string) *mysql.Node {
	t.Helper()
	n, err := mysql.Open(dsn, &mysql.Options{Name: "test", Table: table})
	must(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

// TestLockIsNotGrantedWithoutACommit has sessions begin without autocommit: a lock
// is committed, or refused.
func TestLockIsNotGrantedWithoutACommit(t *testing.T) { onBoth(t, withoutACommit) }

func withoutACommit(t *testing.T, p product) {
	server := p.own(t, "--init-connect=SET autocommit = 0")
	exec(t, server.DSN(), "CREATE USER plain") // the root user is spared init_connect
	grant(t, server.DSN(), "plain")
	plain := strings.Replace(server.DSN(), "root@", "plain@", 1)
	proxy := servertest.NewProxy(t, server)
	given, _ := over(t, plain, 4)
	for name, c := range map[string]struct {
		node    *mysql.Node
		refused bool
	}{
		"set by the server":                  {opened(t, plain), false},
		"set by the data source name":        {opened(t, server.DSN()+"?autocommit=0"), false},
		"set by the server, behind a proxy":  {opened(t, strings.Replace(plain, server.Addr(), proxy.Addr(), 1)), false},
		"set by the server, in a given pool": {given, true},
	} {
		t.Run(name, func(t *testing.T) {
			req := acquire("one")
			req.Name = name
			if c.refused {
				refused(t, c.node, req, "autocommit")
				return
			}
			granted(t, c.node, req)
			heldFor(t, opened(t, server.DSN()), req)
		})
	}
	var open int
	if err := operator(t, server.DSN()).QueryRow("SELECT COUNT(*) FROM information_schema.innodb_trx").Scan(&open); err != nil || open != 0 {
		t.Errorf("%d transactions are left open, %v", open, err)
	}
}

// TestLockIsNotGrantedInAnOpenTransaction has sessions begin in a transaction, or be
// left in one. A lock is committed, or refused, and the session is not used again.
func TestLockIsNotGrantedInAnOpenTransaction(t *testing.T) { onBoth(t, openTransactions) }

func openTransactions(t *testing.T, p product) {
	server := p.own(t, "--init-connect=START TRANSACTION")
	exec(t, server.DSN(), "CREATE USER plain") // the root user is spared init_connect
	grant(t, server.DSN(), "plain")
	plain := strings.Replace(server.DSN(), "root@", "plain@", 1)
	inConnect, _ := over(t, plain, 1)
	begun, db := over(t, server.DSN(), 1)
	run(t, db, "BEGIN")
	between, other := over(t, server.DSN(), 1)
	between = betweenOnce(between, func() { run(t, other, "BEGIN") })
	for name, c := range map[string]struct {
		node    *mysql.Node
		refused int // requests, before one is granted
	}{
		"in init_connect":                  {opened(t, plain), 0},
		"in init_connect, in a given pool": {inConnect, 3},
		"on a given pool":                  {begun, 1},
		"between read and write":           {between, 1},
		"by CHAIN, after a wait in vain":   {chained(t, server.DSN()), 0},
	} {
		t.Run(name, func(t *testing.T) {
			req := acquire("one")
			req.Name = name
			for range c.refused {
				refused(t, c.node, req, "a transaction is open")
			}
			if c.node == inConnect {
				return // every session of it is so
			}
			granted(t, c.node, req)
			heldFor(t, opened(t, server.DSN()), req)
		})
	}
}

// grant creates the table, and gives a user the rights that a user of locks needs.
func grant(t testing.TB, dsn, user string) {
	t.Helper()
	schema, err := mysql.Schema("")
	must(t, err)
	db := operator(t, dsn)
	const empty = 1065 // a comment that the other product executes
	var refused *driver.MySQLError
	for s := range strings.SplitSeq(strings.ReplaceAll(schema, "TO locks", "TO "+user), ";\n") {
		if _, err := db.Exec(s); err != nil && !(errors.As(err, &refused) && refused.Number == empty) {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// TestUserOfMySQLNeedsTheRightsThatAreNamed has a user with all rights on its
// database alone.
func TestUserOfMySQLNeedsTheRightsThatAreNamed(t *testing.T) {
	server := servertest.OwnMySQL(t)
	exec(t, server.DSN(), "CREATE USER plain", "GRANT ALL ON test.* TO plain")
	n := opened(t, strings.Replace(server.DSN(), "root@", "plain@", 1))
	refused(t, n, acquire("one"), "grant the rights that redlatch schema mysql prints")
	grant(t, server.DSN(), "plain")
	granted(t, n, acquire("one"))
	exec(t, server.DSN(), "UPDATE performance_schema.setup_consumers SET enabled = 'NO' WHERE name = 'events_transactions_current'")
	refused(t, n, acquire("one"), "it cannot be seen whether a transaction is open")
}

// TestStatementsReadNoOtherSessions asks MySQL for the statements that it has
// executed. Who reads the list of sessions reads their texts, which a server may not
// be able to convert.
func TestStatementsReadNoOtherSessions(t *testing.T) {
	server := servertest.OwnMySQL(t)
	granted(t, opened(t, server.DSN()), acquire("one"))
	var ours, theirs int
	must(t, operator(t, server.DSN()).QueryRow("SELECT SUM(digest_text LIKE '%`redlatch_lock`%'), SUM(digest_text LIKE '%`processlist`%') FROM performance_schema.events_statements_summary_by_digest").Scan(&ours, &theirs))
	if ours == 0 || theirs > 0 {
		t.Errorf("%d statements read the table, %d the list of sessions", ours, theirs)
	}
}

// chained returns a node whose session begins a transaction when one ends, and has
// ended one: it waited for a row in vain.
func chained(t *testing.T, dsn string) *mysql.Node {
	n, db := over(t, dsn, 1)
	req := acquire("one")
	granted(t, n, req)
	run(t, db, "SET completion_type = 'CHAIN', innodb_lock_wait_timeout = 1")
	defer begin(t, operator(t, dsn), "SELECT 1 FROM redlatch_lock WHERE name = 'job' FOR UPDATE").Rollback()
	req.Op = node.OpExtend
	if r, err := n.Do(t.Context(), req); err == nil || !strings.Contains(err.Error(), "1205") {
		t.Fatalf("an extension whose row is locked: %v, %v", r.Status, err)
	}
	return n
}

// TestSessionWithAClockOfItsOwnIsRefused has sessions whose time is set: they would
// see locks as expired, or take locks that others see as expired.
func TestSessionWithAClockOfItsOwnIsRefused(t *testing.T) { onBoth(t, ownClocks) }

func ownClocks(t *testing.T, p product) {
	dsn := p.shared(t)
	holder := acquire("one")
	holder.Name, holder.TTL = "clock", time.Hour
	granted(t, opened(t, dsn), holder)
	for _, off := range []time.Duration{-2 * time.Hour, -time.Minute, time.Minute, 2 * time.Hour} {
		set := fmt.Sprintf("%s?timestamp=%f", dsn, float64(time.Now().Add(off).UnixMicro())/1e6)
		refused(t, opened(t, set), holder, "timestamp")
	}
	for _, setting := range []string{"time_zone=%27-07:00%27", "sql_mode=%27" + p.mode + "%27"} {
		heldFor(t, opened(t, dsn+"?"+setting), holder)
	}
}

// TestWriteWithoutAReadComparesTheSessionsClock sets the time of a session a bit
// ahead, when the node has read the clock before and expects such a time.
func TestWriteWithoutAReadComparesTheSessionsClock(t *testing.T) { onBoth(t, comparesTheClock) }

func comparesTheClock(t *testing.T, p product) {
	n, db := over(t, p.shared(t), 1)
	req := acquire("one")
	req.Name, req.TTL = "clock of a session", time.Hour
	granted(t, n, req)
	run(t, db, "SET timestamp = UNIX_TIMESTAMP(SYSDATE(6)) + 0.15")
	req.Op = node.OpExtend
	refused(t, n, req, "timestamp")
}

// TestSessionThatConvertsNamesIsRefused has a server convert the bytes of a name:
// one name would have several rows.
func TestSessionThatConvertsNamesIsRefused(t *testing.T) { onBoth(t, convertsNames) }

func convertsNames(t *testing.T, p product) {
	dsn := p.shared(t)
	for setting, converts := range map[string]bool{
		"":                 false,
		"SET NAMES latin1": false,
		"SET collation_connection = latin1_swedish_ci": true,
		"SET character_set_client = latin1":            true,
		"SET character_set_connection = ascii":         true,
	} {
		n, db := over(t, dsn, 1)
		if setting != "" {
			run(t, db, setting)
		}
		req := acquire("one")
		req.Name = "müller " + setting
		if converts { // the session may have a transaction, too: it is not used again
			refused(t, n, req, "character_set")
		}
		granted(t, n, req)
		heldFor(t, opened(t, dsn), req)
	}
}

// TestNothingIsLeftOnAGivenSession compares the settings of a session before and
// after requests.
func TestNothingIsLeftOnAGivenSession(t *testing.T) { onBoth(t, nothingIsLeft) }

func nothingIsLeft(t *testing.T, p product) {
	n, db := over(t, p.shared(t), 1)
	settings := func() map[string]string {
		rows, err := db.Query("SHOW SESSION VARIABLES")
		must(t, err)
		defer rows.Close()
		all := map[string]string{}
		for rows.Next() {
			var name, value string
			must(t, rows.Scan(&name, &value))
			all[name] = value
		}
		delete(all, "timestamp") // the time now
		return all
	}
	before := settings()
	ctx := context.Background()
	for _, op := range []node.Op{node.OpAcquire, node.OpExtend, node.OpInspect, node.OpRelease} {
		req := acquire("one")
		req.Name, req.Op = "settings", op
		_, err := n.Do(ctx, req)
		must(t, err)
	}
	if after := settings(); !maps.Equal(before, after) {
		for name, value := range after {
			if before[name] != value {
				t.Errorf("%s is %q, and was %q", name, value, before[name])
			}
		}
	}
}
