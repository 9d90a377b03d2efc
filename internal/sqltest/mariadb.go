//go:build unix

package sqltest

import (
	"errors"
	"path/filepath"
	"testing"
)

// MariaDB returns the data source name of a database on a MariaDB server, for
// github.com/go-sql-driver/mysql. All tests of a binary share it.
func MariaDB(t testing.TB) string {
	t.Helper()
	return "root@tcp(127.0.0.1:" + mariaDB.address(t) + ")/test"
}

var mariaDB = &server{name: "MariaDB", ready: "ready for connections", end: "KILL", setUp: func(s *server) error {
	install := find("mariadb-install-db", "mysql_install_db")
	daemon := find("mariadbd", "mysqld", "/usr/sbin/mariadbd", "/usr/libexec/mariadbd")
	if install == "" || daemon == "" {
		return errors.New("mariadbd and mariadb-install-db are missing: install the system's package (apt-get install mariadb-server), or run make deps")
	}
	if err := s.giveUpRoot("mysql"); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	if err := s.command(install, "--no-defaults", "--datadir="+data,
		"--auth-root-authentication-method=normal", "--skip-name-resolve"); err != nil {
		return err
	}
	s.run = []string{daemon, "--no-defaults", "--datadir=" + data,
		"--bind-address=127.0.0.1", "--port=" + s.port, "--socket=" + filepath.Join(s.dir, "socket"),
		"--pid-file=" + filepath.Join(s.dir, "pid"), "--skip-name-resolve",
		// It is removed at the end: no syncing, little memory.
		"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M", "--skip-log-bin"}
	return nil
}}
