//go:build unix

package mysql_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/rowtest"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/mysql"
)

var must = check.Must

// TestFaults has on MySQL what is not the same as on MariaDB.
func TestFaults(t *testing.T) {
	t.Run("MariaDB", func(t *testing.T) { rowtest.All.Run(t, mariaDB.harness()) })
	t.Run("MySQL", func(t *testing.T) { rowtest.Differing.Run(t, mySQL.harness()) })
}

func (p product) harness() rowtest.Harness {
	return rowtest.Harness{
		Start: func(t testing.TB) *servertest.OwnDatabase {
			return p.replicating(t, 1)
		},
		Follow:  p.follow,
		Open:    p.open,
		Between: between,
		Driver:  "mysql",

		LockRow:     "SELECT 1 FROM redlatch_lock WHERE name = ? FOR UPDATE",
		Waiting:     "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
		KillWaiting: killWaiting,
		FillDisk: []string{`CREATE TRIGGER full_disk BEFORE UPDATE ON redlatch_lock FOR EACH ROW
			SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1021, MESSAGE_TEXT = 'Disk full'`},
		EmptyDisk: []string{`DROP TRIGGER full_disk`},
	}
}

func (p product) open(t testing.TB, dsn string, s rowtest.Settings) node.Node {
	parameters := []string{"interpolateParams=true"}
	if s.Timeout > 0 {
		parameters = append(parameters, p.limit(s.Timeout))
	}
	if s.Serializable {
		parameters = append(parameters, p.isolation+"=%27SERIALIZABLE%27")
	}
	n, _ := over(t, dsn+"?"+strings.Join(parameters, "&"), 0)
	return n
}

func between(t testing.TB, server *servertest.OwnDatabase, at string, f func()) node.Node {
	return mysql.Between(opened(t, server.Through(at)), f)
}

func killWaiting(t testing.TB, db *sql.DB) {
	const waits = `FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`
	var id, sessions int
	must(t, db.QueryRow(`SELECT MAX(trx_mysql_thread_id), COUNT(*) `+waits).Scan(&id, &sessions))
	if sessions != 1 {
		t.Errorf("%d sessions wait, want 1", sessions)
	}
	_, err := db.Exec(fmt.Sprint("KILL ", id))
	must(t, err)
}

func (p product) follow(t testing.TB, primary *servertest.OwnDatabase) (replica *servertest.OwnDatabase, stop, promote func()) {
	replica = p.replicating(t, 2, "--read-only=1")
	p.replicate(t, replica, primary)
	stop = func() { exec(t, replica.DSN(), "STOP SLAVE") }
	return replica, stop, func() { exec(t, replica.DSN(), "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0") }
}

// replicating starts a server that others can follow.
func (p product) replicating(t testing.TB, id int, flags ...string) *servertest.OwnDatabase {
	return p.own(t, append(append(flags, p.flags...), fmt.Sprint("--server-id=", id), "--log-bin")...)
}

// replicate has a server follow another one, asynchronously.
func (p product) replicate(t testing.TB, replica, primary *servertest.OwnDatabase) {
	_, port, _ := strings.Cut(primary.Addr(), ":")
	exec(t, replica.DSN(),
		"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = "+port+", MASTER_USER = 'root', "+p.position,
		"START SLAVE")
}

// exec executes statements, as an operator.
func exec(t testing.TB, dsn string, statements ...string) {
	t.Helper()
	db := operator(t, dsn)
	for _, s := range statements {
		run(t, db, s)
	}
}

// run executes a statement on a connection of a pool.
func run(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// TestWritesWithoutARead has requests that nobody contends for.
func TestWritesWithoutARead(t *testing.T) { onBoth(t, withoutARead) }

func withoutARead(t *testing.T, p product) {
	dsn := p.own(t).DSN()
	rowtest.Count(t, "mysql", dsn, "SELECT variable_value FROM "+p.status+" WHERE variable_name = 'Questions'", func() node.Node { return opened(t, dsn) })
}
