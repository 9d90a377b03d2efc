//go:build unix

package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// TestWritableReplicaGrantsNothing asks a replica that is not read-only, while it
// replicates and after it has stopped. A server that has taken its primary's place,
// and is set up as one, grants.
func TestWritableReplicaGrantsNothing(t *testing.T) {
	primary := servertest.OwnMariaDB(t, "--server-id=1", "--log-bin")
	ctx := context.Background()
	if _, err := opened(t, primary.DSN()).Do(ctx, acquire("one")); err != nil {
		t.Fatal(err)
	}
	replica, _ := mariaDB.follow(t, primary)
	exec(t, replica.DSN(), "SET GLOBAL read_only = 0", "CREATE USER plain", "GRANT ALL ON test.* TO plain")
	running, blind := opened(t, replica.DSN()), opened(t, strings.Replace(replica.DSN(), "root@", "plain@", 1))
	other := acquire("two")
	other.Name = "other"
	refused := func(what string, n node.Node, says string) {
		t.Helper()
		if r, err := n.Do(ctx, other); err == nil || !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v; want an error that says %q", what, r.Status, err, says)
		}
	}
	const replicates, isSetUp = "this server replicates from another one", "RESET SLAVE ALL"
	refused("it replicates", running, replicates)
	refused("it replicates, asked again", running, replicates)
	refused("it replicates, seen without a right", blind, replicates)
	exec(t, replica.DSN(), "STOP SLAVE")
	refused("it has stopped, and was asked before", running, isSetUp)
	refused("it has stopped", opened(t, replica.DSN()), isSetUp)
	if w := blind.Warnings(); len(w) != 0 {
		t.Errorf("before it is known: %q", w)
	}
	if r, err := blind.Do(ctx, other); err != nil || r.Status != node.Granted {
		t.Errorf("it has stopped, seen without a right: %v, %v", r.Status, err)
	}
	if w := blind.Warnings(); len(w) != 1 || !strings.Contains(w[0], "SLAVE MONITOR") {
		t.Errorf("without a right it warns %q", w)
	}
	exec(t, replica.DSN(), "RESET SLAVE ALL")
	other.Name = "third"
	if r, err := running.Do(ctx, other); err != nil || r.Status != node.Granted {
		t.Errorf("it is no replica any more: %v, %v", r.Status, err)
	}
}

// TestReplicaThatStartsBetweenReadAndWriteGrantsNothing has a server begin to
// replicate after a read: one that was a replica before, and one that never was.
func TestReplicaThatStartsBetweenReadAndWriteGrantsNothing(t *testing.T) {
	primary := servertest.OwnMariaDB(t, "--server-id=1", "--log-bin")
	ctx := context.Background()
	if _, err := opened(t, primary.DSN()).Do(ctx, acquire("one")); err != nil {
		t.Fatal(err)
	}
	before, promote := mariaDB.follow(t, primary)
	promote()
	for name, server := range map[string]*servertest.OwnDatabase{"before": before, "never": servertest.OwnMariaDB(t, "--server-id=3")} {
		n := opened(t, server.DSN())
		if _, _, err := n.Identity(ctx); err != nil {
			t.Fatal(err)
		}
		b := betweenOnce(n, func() {
			mariaDB.replicate(t, server, primary)
			db, err := sql.Open("mysql", server.DSN())
			must(t, err)
			defer db.Close()
			for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				var position string
				if err := db.QueryRow("SELECT @@GLOBAL.gtid_slave_pos").Scan(&position); err != nil || time.Now().After(end) {
					t.Fatal("it does not replicate: ", err)
				}
				if position != "" {
					return
				}
			}
		})
		other := acquire("two")
		other.Name = "other"
		if r, err := b.Do(ctx, other); err == nil || !strings.Contains(err.Error(), "replicate") {
			t.Errorf("a replica %s: %v, %v; want it refused", name, r.Status, err)
		}
	}
}

// TestWritableReplicaOfMySQLGrantsNothing asks one while it replicates, after it has
// stopped, and when it is set up as a primary.
func TestWritableReplicaOfMySQLGrantsNothing(t *testing.T) {
	gtid := []string{"--log-bin=log-bin", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"}
	primary := servertest.OwnMySQL(t, append(gtid, "--server-id=1")...)
	replica := servertest.OwnMySQL(t, append(gtid, "--server-id=2")...)
	_, port, _ := strings.Cut(primary.Addr(), ":")
	exec(t, replica.DSN(), "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = "+port+", MASTER_USER = 'root', MASTER_AUTO_POSITION = 1", "START SLAVE")
	n := opened(t, replica.DSN())
	for _, c := range []struct{ statement, says string }{
		{"DO 0", "this server replicates from another one"}, {"STOP SLAVE", "RESET SLAVE ALL"}, {"RESET SLAVE ALL", ""},
	} {
		exec(t, replica.DSN(), c.statement)
		r, err := n.Do(t.Context(), acquire("one"))
		if granted := err == nil && r.Status == node.Granted; granted != (c.says == "") || err != nil && (!errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("after %s: %v, %v; want %q", c.statement, r.Status, err, c.says)
		}
	}
}
