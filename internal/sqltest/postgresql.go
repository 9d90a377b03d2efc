//go:build unix

package sqltest

import (
	"errors"
	"path/filepath"
	"testing"
)

// PostgreSQL returns the address of a database on a PostgreSQL server, in the
// form of github.com/jackc/pgx and github.com/lib/pq. All tests of a binary
// share it.
func PostgreSQL(t testing.TB) string {
	t.Helper()
	return postgresURL(postgreSQL.address(t))
}

func postgresURL(port string) string {
	return "postgres://postgres@127.0.0.1:" + port + "/postgres?sslmode=disable"
}

var postgreSQL = newPostgreSQL(func(s *server, programs, data string) error {
	return s.command(filepath.Join(programs, "initdb"), "--pgdata="+data, "--username=postgres",
		"--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
})

// newPostgreSQL returns a server whose data fill creates with one of PostgreSQL's
// programs.
func newPostgreSQL(fill func(s *server, programs, data string) error) *server {
	return &server{name: "PostgreSQL", ready: "ready to accept", end: "QUIT", setUp: func(s *server) error {
		// Distributions install the server's programs outside the path, by
		// version, some with links to a few of them.
		daemon, err := filepath.EvalSymlinks(find("postgres", "/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres",
			"/usr/libexec/postgresql*/postgres", "/opt/homebrew/opt/postgresql*/bin/postgres", "/usr/local/opt/postgresql*/bin/postgres"))
		if err != nil {
			return errors.New("postgres is missing: install the system's package (apt-get install postgresql), or run make deps")
		}
		if err := s.giveUpRoot("postgres"); err != nil {
			return err
		}
		data := filepath.Join(s.dir, "data")
		if err := fill(s, filepath.Dir(daemon), data); err != nil {
			return err
		}
		s.run = []string{daemon, "-D", data, "-h", "127.0.0.1", "-p", s.port, "-k", s.dir,
			// It is removed at the end: no syncing, little memory.
			"-F", "-c", "shared_buffers=16MB", "-c", "max_connections=60", "-c", "autovacuum=off"}
		return nil
	}}
}

// OwnPostgreSQL starts a server for one test.
func OwnPostgreSQL(t testing.TB) *Own {
	t.Helper()
	return own(t, &server{name: postgreSQL.name, ready: postgreSQL.ready, end: postgreSQL.end, setUp: postgreSQL.setUp}, postgresURL)
}

// Replica starts a replica of a PostgreSQL server, which follows it
// asynchronously. SELECT pg_promote() makes it a primary.
func (o *Own) Replica() *Own {
	o.t.Helper()
	return own(o.t, newPostgreSQL(func(s *server, programs, data string) error {
		return s.command(filepath.Join(programs, "pg_basebackup"), "--pgdata="+data, "--host=127.0.0.1", "--port="+o.port,
			"--username=postgres", "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	}), postgresURL)
}
