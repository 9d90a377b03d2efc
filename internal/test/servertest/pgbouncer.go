//go:build unix

package servertest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// newPgBouncer returns a PgBouncer before what listens on a loopback port: a
// PostgreSQL server that runs, or a proxy before it. It is in transaction mode
// with a few connections: each statement may get another session. Its DSN is the
// same for every address: it listens on a socket in its folder, and on no port.
func newPgBouncer(port func() string) *Database {
	s := &Database{Name: "PgBouncer", ready: "process up", end: os.Kill}
	s.DSN = func(string) string {
		return "postgres://postgres@/postgres?sslmode=disable&host=" + url.QueryEscape(s.dir) + "&port=6432"
	}
	s.setUp = func(*Database) error {
		daemon := find("pgbouncer", "/usr/sbin/pgbouncer")
		if daemon == "" {
			return errors.New("pgbouncer is missing: install the system's package (apt-get install pgbouncer), or run make deps")
		}
		if err := s.giveUpRoot("postgres"); err != nil {
			return err
		}
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
server_login_retry = 1
`, port(), s.dir)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
		s.run = func() []string { return []string{daemon, file} }
		return nil
	}
	return s
}
