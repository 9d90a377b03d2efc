//go:build unix

package mysql_test

import (
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

// replicates waits until a server of MariaDB has something from another one.
func replicates(t testing.TB, server *servertest.OwnDatabase) {
	t.Helper()
	db := operator(t, server.DSN())
	poll.Until(t, "it replicates", func() (yes bool) {
		must(t, db.QueryRow("SELECT @@GLOBAL.gtid_slave_pos <> ''").Scan(&yes))
		return yes
	})
}

// TestWritableReplicaGrantsNothing asks a replica that is not read-only, while it
// replicates and after it has stopped. A server that has taken its primary's place,
// and is set up as one, grants.
func TestWritableReplicaGrantsNothing(t *testing.T) {
	primary := servertest.OwnMariaDB(t, "--server-id=1", "--log-bin")
	granted(t, opened(t, primary.DSN()), acquire("one"))
	replica, _, _ := mariaDB.follow(t, primary)
	replicates(t, replica)
	exec(t, replica.DSN(), "SET GLOBAL read_only = 0", "CREATE USER plain", "GRANT ALL ON test.* TO plain")
	running, blind := opened(t, replica.DSN()), opened(t, strings.Replace(replica.DSN(), "root@", "plain@", 1))
	other := acquire("two")
	other.Name = "other"
	const isReplica, isSetUp = "this server replicates from another one", "RESET SLAVE ALL"
	for _, n := range []node.Node{running, running, blind} {
		refused(t, n, other, isReplica)
	}
	exec(t, replica.DSN(), "STOP SLAVE")
	for _, n := range []node.Node{running, opened(t, replica.DSN())} {
		refused(t, n, other, isSetUp)
	}
	if w := blind.Warnings(); len(w) != 0 {
		t.Errorf("before it is known: %q", w)
	}
	granted(t, blind, other) // the right to see that it is set up is missing
	if w := blind.Warnings(); len(w) != 1 || !strings.Contains(w[0], "SLAVE MONITOR") {
		t.Errorf("without a right it warns %q", w)
	}
	exec(t, replica.DSN(), "RESET SLAVE ALL")
	other.Name = "third"
	granted(t, running, other)
}

// TestReplicaThatStartsBetweenReadAndWriteGrantsNothing has a server begin to
// replicate after a read: one that was a replica before, and one that never was.
func TestReplicaThatStartsBetweenReadAndWriteGrantsNothing(t *testing.T) {
	primary := servertest.OwnMariaDB(t, "--server-id=1", "--log-bin")
	granted(t, opened(t, primary.DSN()), acquire("one"))
	before, _, promote := mariaDB.follow(t, primary)
	replicates(t, before)
	promote()
	for name, server := range map[string]*servertest.OwnDatabase{"before": before, "never": servertest.OwnMariaDB(t, "--server-id=3")} {
		n := opened(t, server.DSN())
		_, _, err := n.Identity(t.Context())
		must(t, err)
		b := betweenOnce(n, func() {
			mariaDB.replicate(t, server, primary)
			replicates(t, server)
		})
		other := acquire("two")
		other.Name = "other"
		if r, err := b.Do(t.Context(), other); err == nil || !strings.Contains(err.Error(), "replicate") {
			t.Errorf("a replica %s: %v, %v; want it refused", name, r.Status, err)
		}
	}
}

// TestWritableReplicaOfMySQLGrantsNothing asks one while it replicates, after it has
// stopped, and when it is set up as a primary.
func TestWritableReplicaOfMySQLGrantsNothing(t *testing.T) {
	replica := mySQL.replicating(t, 2)
	mySQL.replicate(t, replica, mySQL.replicating(t, 1))
	n := opened(t, replica.DSN())
	refused(t, n, acquire("one"), "this server replicates from another one")
	exec(t, replica.DSN(), "STOP SLAVE")
	refused(t, n, acquire("one"), "RESET SLAVE ALL")
	exec(t, replica.DSN(), "RESET SLAVE ALL")
	granted(t, n, acquire("one"))
}
