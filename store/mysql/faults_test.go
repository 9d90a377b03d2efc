//go:build unix

package mysql_test

import (
	"cmp"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/rowtest"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/mysql"
)

var must = check.Must

func TestFaults(t *testing.T) { onBoth(t, faults) }

func faults(t *testing.T, p product) {
	rowtest.Run(t, rowtest.Harness{
		Start: func(t testing.TB) *servertest.OwnDatabase {
			return p.replicating(t, 1)
		},
		Follow: p.follow,
		Open:   p.open,
		Driver: "mysql",

		LockRow:     "SELECT 1 FROM redlatch_lock WHERE name = ? FOR UPDATE",
		Waiting:     "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
		KillWaiting: killWaiting,
		FillDisk: []string{`CREATE TRIGGER full_disk BEFORE UPDATE ON redlatch_lock FOR EACH ROW
			SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1021, MESSAGE_TEXT = 'Disk full'`},
		EmptyDisk: []string{`DROP TRIGGER full_disk`},
	})
}

func (p product) open(t testing.TB, dsn string, s rowtest.Settings) node.Node {
	var parameters []string
	if s.Timeout > 0 {
		parameters = append(parameters, p.limit(s.Timeout))
	}
	if s.Serializable {
		parameters = append(parameters, p.isolation+"=%27SERIALIZABLE%27")
	}
	parameters = append(parameters, "interpolateParams=true")
	db, err := sql.Open("mysql", dsn+"?"+strings.Join(parameters, "&"))
	must(t, err)
	t.Cleanup(func() { db.Close() })
	if s.Pool > 0 {
		db.SetMaxOpenConns(s.Pool)
	}
	n, err := mysql.From(db, &mysql.Options{Name: cmp.Or(s.Name, "test")})
	must(t, err)
	return n
}

func killWaiting(t testing.TB, db *sql.DB) {
	rows, err := db.Query(`SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`)
	must(t, err)
	defer rows.Close()
	var all []int
	for rows.Next() {
		var id int
		must(t, rows.Scan(&id))
		all = append(all, id)
	}
	if len(all) != 1 {
		t.Errorf("%d sessions wait, want 1", len(all))
	}
	for _, id := range all {
		if _, err := db.Exec(fmt.Sprintf("KILL %d", id)); err != nil {
			t.Error(err)
		}
	}
}

func (p product) follow(t testing.TB, primary *servertest.OwnDatabase) (*servertest.OwnDatabase, func()) {
	replica := p.replicating(t, 2, "--read-only=1")
	db, err := sql.Open("mysql", replica.DSN())
	must(t, err)
	t.Cleanup(func() { db.Close() })
	p.replicate(t, replica, primary)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM redlatch_lock").Scan(&n); err == nil && n >= 2 { // the marker and a lock
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the replica does not follow: %v", err)
		}
	}
	return replica, func() { exec(t, replica.DSN(), "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0") }
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
	db, err := sql.Open("mysql", dsn)
	must(t, err)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func BenchmarkReaders(b *testing.B) {
	rowtest.Readers(b, mariaDB.open(b, servertest.OwnMariaDB(b).DSN(), rowtest.Settings{}))
}
