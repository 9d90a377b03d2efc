//go:build unix

package servertest

import (
	"errors"
	"path/filepath"
	"strconv"
	"syscall"
)

// NewPostgreSQL returns a PostgreSQL server, with flags of its own.
func NewPostgreSQL(flags ...string) *Database {
	return postgreSQLServer(flags, func(s *Database, programs, data string) error {
		return s.command(filepath.Join(programs, "initdb"), "--pgdata="+data, "--username=postgres",
			"--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	})
}

// Replica returns a replica of a PostgreSQL server that runs, which follows it
// asynchronously. SELECT pg_promote() makes it a primary.
func (s *Database) Replica() *Database {
	return postgreSQLServer(s.flags, func(r *Database, programs, data string) error {
		return r.command(filepath.Join(programs, "pg_basebackup"), "--pgdata="+data, "--host=127.0.0.1", "--port="+strconv.Itoa(s.port),
			"--username=postgres", "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	})
}

// postgreSQLServer returns a server whose data fill creates with one of PostgreSQL's
// programs.
func postgreSQLServer(flags []string, fill func(s *Database, programs, data string) error) *Database {
	const scheme, database = "postgres://postgres@", "/postgres?sslmode=disable"
	return &Database{
		Name: "PostgreSQL", scheme: scheme, database: database, flags: flags,
		DSN:   func(address string) string { return scheme + address + database },
		ready: "ready to accept", end: syscall.SIGQUIT,
		setUp: func(s *Database) error {
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
			s.run = func() []string {
				return append([]string{daemon, "-D", data, "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-k", s.dir,
					// It is removed at the end: no syncing, little memory.
					"-F", "-c", "shared_buffers=16MB", "-c", "max_connections=60", "-c", "autovacuum=off"}, flags...)
			}
			return nil
		}}
}
