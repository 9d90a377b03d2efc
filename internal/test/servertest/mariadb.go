//go:build unix

package servertest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
)

// NewMariaDB returns a MariaDB server, with flags of its own.
func NewMariaDB(flags ...string) *Database {
	return &Database{
		Name: "MariaDB", scheme: "mysql://root@", database: "/test",
		DSN:   func(address string) string { return "root@tcp(" + address + ")/test" },
		ready: "ready for connections", end: os.Kill,
		setUp: func(s *Database) error { return s.setUpMariaDB(flags) },
	}
}

func (s *Database) setUpMariaDB(flags []string) error {
	// A program of the name mysqld may be MySQL's.
	install := find("mariadb-install-db")
	daemon := find("mariadbd", "/usr/sbin/mariadbd", "/usr/libexec/mariadbd")
	if install == "" || daemon == "" {
		return errors.New("mariadbd and mariadb-install-db are missing: install the system's package (apt-get install mariadb-server), or run make deps")
	}
	if err := s.giveUpRoot("mysql"); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	if err := s.fill(data, install, "--auth-root-authentication-method=normal", "--skip-name-resolve"); err != nil {
		return err
	}
	s.runs(daemon, data, flags)
	return nil
}

// runs runs the server by a daemon of MariaDB or MySQL.
func (s *Database) runs(daemon, data string, flags []string) {
	s.run = func() []string {
		return append([]string{daemon, "--no-defaults", "--datadir=" + data,
			"--bind-address=127.0.0.1", "--port=" + strconv.Itoa(s.port), "--socket=" + filepath.Join(s.dir, "socket"),
			"--pid-file=" + filepath.Join(s.dir, "pid"), "--tmpdir=" + s.dir, "--skip-name-resolve",
			// It is removed at the end: no syncing, little memory. What is committed
			// is in the system's cache, and outlives a killed server.
			"--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0", "--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M"}, flags...)
	}
}

// installing guards empty.
var installing sync.Mutex

// empty has a folder with the data of a new server, for each program that makes it.
var empty = map[string]string{}

// fill creates the data of a new server. That takes seconds, so it is done once,
// and copied. No two servers share a folder for temporary tables: one that starts
// deletes all that it finds there.
func (s *Database) fill(data, install string, flags ...string) error {
	installing.Lock()
	defer installing.Unlock()
	if from := empty[install]; from != "" {
		return exec.Command("cp", "-a", from, data).Run()
	}
	if err := s.command(install, append([]string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + s.dir, "--innodb-log-file-size=8M"}, flags...)...); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "database")
	if err != nil {
		return err
	}
	empty[install] = filepath.Join(dir, "data")
	return exec.Command("cp", "-a", data, empty[install]).Run()
}

// CleanUp removes the data of new servers that was kept to be copied. The next one
// creates it anew.
func CleanUp() {
	installing.Lock()
	defer installing.Unlock()
	for _, data := range empty {
		os.RemoveAll(filepath.Dir(data))
	}
	clear(empty)
}
