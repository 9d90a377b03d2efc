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
	return "postgres://postgres@127.0.0.1:" + postgreSQL.address(t) + "/postgres?sslmode=disable"
}

var postgreSQL = &server{name: "PostgreSQL", ready: "ready to accept connections", end: "QUIT", setUp: func(s *server) error {
	// Distributions install the server's programs outside the path, by version.
	daemon := find("postgres", "/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres",
		"/usr/libexec/postgresql*/postgres", "/opt/homebrew/opt/postgresql*/bin/postgres", "/usr/local/opt/postgresql*/bin/postgres")
	if daemon == "" {
		return errors.New("postgres is missing: install the system's package (apt-get install postgresql), or run make deps")
	}
	if err := s.giveUpRoot("postgres"); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	if err := s.command(filepath.Join(filepath.Dir(daemon), "initdb"), "--pgdata="+data, "--username=postgres",
		"--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"); err != nil {
		return err
	}
	s.run = []string{daemon, "-D", data, "-h", "127.0.0.1", "-p", s.port, "-k", s.dir,
		// It is removed at the end: no syncing, little memory.
		"-F", "-c", "shared_buffers=16MB", "-c", "max_connections=60", "-c", "autovacuum=off"}
	return nil
}}
