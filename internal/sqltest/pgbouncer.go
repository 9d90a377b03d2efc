//go:build unix

package sqltest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

// PgBouncer returns the address of the same database as PostgreSQL, through
// PgBouncer in transaction mode with a few connections: each statement may get
// another session. All tests of a binary share it.
func PgBouncer(t testing.TB) string {
	t.Helper()
	pgBouncer.behind = postgreSQL.address(t)
	pgBouncer.address(t)
	return "postgres://postgres@/postgres?sslmode=disable&host=" + url.QueryEscape(pgBouncer.dir) + "&port=6432"
}

var pgBouncer = &server{name: "PgBouncer", ready: "process up", end: "KILL", setUp: func(s *server) error {
	daemon := find("pgbouncer", "/usr/sbin/pgbouncer")
	if daemon == "" {
		return errors.New("pgbouncer is missing: install the system's package (apt-get install pgbouncer), or run make deps")
	}
	if err := s.giveUpRoot("postgres"); err != nil {
		return err
	}
	// It listens on a socket in its folder, and on no port.
	file := filepath.Join(s.dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%s user=postgres
[pgbouncer]
listen_port = 6432
unix_socket_dir = %s
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 1000
`, s.behind, s.dir)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	s.run = []string{daemon, file}
	return nil
}}
