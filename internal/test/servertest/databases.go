//go:build unix

package servertest

import (
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

// Main runs the tests, ends the servers that they started, and returns the
// exit code.
func Main(m *testing.M) int {
	defer func() {
		for _, s := range []*shared{mariaDB, mySQL, pgBouncer, postgreSQL} {
			s.Stop()
		}
		CleanUp()
	}()
	return m.Run()
}

// shared is a server of all tests of a binary, started at most once.
type shared struct {
	*Database
	once sync.Once
	err  error
}

var (
	mariaDB    = &shared{Database: NewMariaDB()}
	mySQL      = &shared{Database: NewMySQL()}
	postgreSQL = &shared{Database: NewPostgreSQL()}
	pgBouncer  = &shared{Database: newPgBouncer(func() string { return strconv.Itoa(postgreSQL.port) })}
)

// dsn starts the server if it does not run yet, and returns the address of a
// database on it.
func (s *shared) dsn(t testing.TB) string {
	t.Helper()
	need(t, s.Database)
	s.once.Do(func() { s.err = s.Start() })
	if s.err != nil {
		t.Fatalf("%s: %v", s.Name, s.err)
	}
	return s.DSN(s.Addr())
}

func need(t testing.TB, s *Database) {
	t.Helper()
	if testing.Short() {
		t.Skipf("it needs %s, and -short starts no servers", s.Name)
	}
}

// MariaDB returns the data source name of a database on a MariaDB server, for
// github.com/go-sql-driver/mysql.
func MariaDB(t testing.TB) string { return mariaDB.dsn(t) }

// MySQL returns the data source name of a database on a MySQL server.
func MySQL(t testing.TB) string { return mySQL.dsn(t) }

// PostgreSQL returns the address of a database on a PostgreSQL server, in the
// form of github.com/jackc/pgx and github.com/lib/pq.
func PostgreSQL(t testing.TB) string { return postgreSQL.dsn(t) }

// PgBouncer returns the address of the same database as PostgreSQL, through
// PgBouncer in transaction mode.
func PgBouncer(t testing.TB) string {
	t.Helper()
	postgreSQL.dsn(t)
	return pgBouncer.dsn(t)
}

// OwnDatabase is a server of one test, which the test may break.
type OwnDatabase struct {
	*Database
	t testing.TB
}

// own starts a server, and ends it with the test.
func own(t testing.TB, s *Database) *OwnDatabase {
	t.Helper()
	need(t, s)
	o := &OwnDatabase{s, t}
	t.Cleanup(s.Stop)
	o.Restart()
	return o
}

// OwnMariaDB starts a server for one test, with flags of its own.
func OwnMariaDB(t testing.TB, flags ...string) *OwnDatabase { return own(t, NewMariaDB(flags...)) }

// OwnMySQL starts a server for one test, with flags of its own.
func OwnMySQL(t testing.TB, flags ...string) *OwnDatabase { return own(t, NewMySQL(flags...)) }

// OwnPostgreSQL starts a server for one test.
func OwnPostgreSQL(t testing.TB) *OwnDatabase { return own(t, NewPostgreSQL()) }

// OwnPgBouncer starts a PgBouncer for one test, in transaction mode, before
// whatever listens on an address.
func OwnPgBouncer(t testing.TB, address string) *OwnDatabase {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	check.Must(t, err)
	return own(t, newPgBouncer(func() string { return port }))
}

// Replica starts a replica of a PostgreSQL server, which follows it
// asynchronously. SELECT pg_promote() makes it a primary.
func (o *OwnDatabase) Replica() *OwnDatabase { return own(o.t, o.Database.Replica()) }

// DSN returns the address of a database on the server.
func (o *OwnDatabase) DSN() string { return o.Through(o.Addr()) }

// Through returns the address of the database by way of another one, such as a
// proxy's.
func (o *OwnDatabase) Through(address string) string { return o.Database.DSN(address) }

// Restart starts the server again, after Kill, with its data and on its port.
func (o *OwnDatabase) Restart() { o.must(o.Start()) }

// Freeze stops all processes of the server, until Thaw.
func (o *OwnDatabase) Freeze() { o.must(o.Database.Freeze()) }

// Thaw continues them.
func (o *OwnDatabase) Thaw() { o.must(o.Database.Thaw()) }

func (o *OwnDatabase) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatalf("%s: %v", o.Name, err)
	}
}
