//go:build unix

package servertest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// NewMySQL returns a MySQL server, with flags of its own.
func NewMySQL(flags ...string) *Database {
	s := NewMariaDB()
	s.Name = "MySQL"
	// The log says so of the server's other ports, too.
	s.ready = "ready for connections. Version"
	s.setUp = func(s *Database) error { return s.setUpMySQL(flags) }
	return s
}

func (s *Database) setUpMySQL(flags []string) error {
	// scripts/install-deps.sh puts it there. A mysqld on the path may be MariaDB's.
	daemon := find("/opt/redlatch-mysql-*/bin/mysqld", "mysqld", "/usr/sbin/mysqld")
	if version, err := exec.Command(daemon, "--version").Output(); err != nil || bytes.Contains(version, []byte("MariaDB")) {
		return errors.New("MySQL's mysqld is missing: run make deps, or install MySQL 8 so that mysqld is on the path")
	}
	if err := s.giveUpRoot("mysql"); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	if err := s.fill(data, daemon, "--initialize-insecure"); err != nil {
		return err
	}
	// It has the identity of the server that it was copied from.
	if err := os.Remove(filepath.Join(data, "auto.cnf")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// Without the resolver, localhost is not 127.0.0.1.
	users := filepath.Join(s.dir, "users.sql")
	if err := os.WriteFile(users, []byte("SET sql_log_bin = 0;\nCREATE USER IF NOT EXISTS root@'%';\nGRANT ALL ON *.* TO root@'%' WITH GRANT OPTION;\nCREATE DATABASE IF NOT EXISTS test;\n"), 0o644); err != nil {
		return err
	}
	s.runs(daemon, data, append([]string{"--init-file=" + users, "--mysqlx=0", "--skip-ssl", "--skip-log-bin"}, flags...))
	return nil
}
