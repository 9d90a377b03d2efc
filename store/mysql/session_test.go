//go:build unix

package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/mysql"
)

// opened returns a node with connections of its own.
func opened(t testing.TB, dsn string) *mysql.Node {
	t.Helper()
	n, err := mysql.Open(dsn, &mysql.Options{Name: "test"})
	must(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

// TestLockIsNotGrantedWithoutACommit has sessions begin without autocommit: a lock
// is committed, or refused.
func TestLockIsNotGrantedWithoutACommit(t *testing.T) {
	server := servertest.OwnMariaDB(t, "--init-connect=SET autocommit = 0")
	exec(t, server.DSN(), "CREATE USER plain", "GRANT ALL ON test.* TO plain") // the root user is spared init_connect
	plain := strings.Replace(server.DSN(), "root@", "plain@", 1)
	proxy := servertest.NewProxy(t, server)
	given, _ := over(t, plain, 4)
	for name, c := range map[string]struct {
		node    *mysql.Node
		refused bool
	}{
		"set by the server":                  {opened(t, plain), false},
		"set by the data source name":        {opened(t, server.DSN()+"?autocommit=0"), false},
		"set by the server, behind a proxy":  {opened(t, strings.Replace(plain, server.Addr(), proxy.Addr(), 1)), true},
		"set by the server, in a given pool": {given, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			req := acquire("one")
			req.Name = name
			_, err := c.node.Do(ctx, req)
			if c.refused != (err != nil) || err != nil && (!errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "autocommit")) {
				t.Errorf("it is refused %v: %v", c.refused, err)
			}
			if err != nil {
				return
			}
			other := req
			other.Value, other.Token = "two", req.Token+1
			if r, err := opened(t, server.DSN()).Do(ctx, other); err != nil || r.Status != node.Held {
				t.Errorf("another: %v, %v; want held", r.Status, err)
			}
		})
	}
	db, err := sql.Open("mysql", server.DSN())
	must(t, err)
	defer db.Close()
	var open int
	if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.innodb_trx").Scan(&open); err != nil || open != 0 {
		t.Errorf("%d transactions are left open, %v", open, err)
	}
}

// TestSessionWithAClockOfItsOwnIsRefused has sessions whose time is set: they would
// see locks as expired, or take locks that others see as expired.
func TestSessionWithAClockOfItsOwnIsRefused(t *testing.T) {
	dsn := servertest.MariaDB(t)
	holder := acquire("one")
	holder.Name, holder.TTL = "clock", time.Hour
	if r, err := opened(t, dsn).Do(t.Context(), holder); err != nil || r.Status != node.Granted {
		t.Fatal(r.Status, err)
	}
	second := holder
	second.Value, second.Token = "two", holder.Token+1
	for _, off := range []time.Duration{-2 * time.Hour, -time.Minute, time.Minute, 2 * time.Hour} {
		set := fmt.Sprintf("%s?timestamp=%f", dsn, float64(time.Now().Add(off).UnixMicro())/1e6)
		r, err := opened(t, set).Do(t.Context(), second)
		if !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "timestamp") {
			t.Errorf("a session whose time is off by %v: %v, %v", off, r.Status, err)
		}
	}
	for _, setting := range []string{"time_zone=%27-07:00%27", "sql_mode=%27ORACLE%27"} {
		if r, err := opened(t, dsn+"?"+setting).Do(t.Context(), second); err != nil || r.Status != node.Held {
			t.Errorf("a session with %s: %v, %v; want held", setting, r.Status, err)
		}
	}
}

// TestWriteWithoutAReadComparesTheSessionsClock sets the time of a session a bit
// ahead, when the node has read the clock before and expects such a time.
func TestWriteWithoutAReadComparesTheSessionsClock(t *testing.T) {
	n, db := over(t, servertest.MariaDB(t), 1)
	req := acquire("one")
	req.Name, req.TTL = "clock of a session", time.Hour
	if r, err := n.Do(t.Context(), req); err != nil || r.Status != node.Granted {
		t.Fatal(r.Status, err)
	}
	_, err := db.Exec("SET timestamp = UNIX_TIMESTAMP(SYSDATE(6)) + 0.15")
	must(t, err)
	req.Op = node.OpExtend
	if r, err := n.Do(t.Context(), req); !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "timestamp") {
		t.Errorf("an extension: %v, %v; want an error about the timestamp", r.Status, err)
	}
}

// TestSessionThatConvertsNamesIsRefused has a server convert the bytes of a name:
// one name would have several rows.
func TestSessionThatConvertsNamesIsRefused(t *testing.T) {
	dsn := servertest.MariaDB(t)
	for setting, refused := range map[string]bool{
		"":                 false,
		"SET NAMES latin1": false,
		"SET collation_connection = latin1_swedish_ci": true,
		"SET character_set_client = latin1":            true,
		"SET character_set_connection = ascii":         true,
	} {
		n, db := over(t, dsn, 1)
		if setting != "" {
			_, err := db.Exec(setting)
			must(t, err)
		}
		req := acquire("one")
		req.Name = "müller " + setting
		r, err := n.Do(t.Context(), req)
		if refused && (!errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "character_set")) {
			t.Errorf("after %q: %v, %v; want an error about the character sets", setting, r.Status, err)
		}
		if !refused {
			req.Value, req.Token = "two", req.Token+1
			if r, other := opened(t, dsn).Do(t.Context(), req); err != nil || other != nil || r.Status != node.Held {
				t.Errorf("after %q: %v, then another: %v, %v; want held", setting, err, r.Status, other)
			}
		}
	}
}

// TestNothingIsLeftOnAGivenSession compares the settings of a session before and
// after requests.
func TestNothingIsLeftOnAGivenSession(t *testing.T) {
	n, db := over(t, servertest.MariaDB(t), 1)
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
		if _, err := n.Do(ctx, req); err != nil {
			t.Fatal(err)
		}
	}
	if after := settings(); !maps.Equal(before, after) {
		for name, value := range after {
			if before[name] != value {
				t.Errorf("%s is %q, and was %q", name, value, before[name])
			}
		}
	}
}
