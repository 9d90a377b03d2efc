//go:build unix

package server

import (
	"database/sql"
	"fmt"

	// The drivers by which the counters are read.
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/redlatch/redlatch/bench/clock"
	"github.com/redlatch/redlatch/internal/sqlproc"
)

// Database is one database server.
type Database struct {
	server *sqlproc.Server
	db     *sql.DB
	count  string // the query for how many statements it has executed
}

// StartPostgres starts PostgreSQL. It does not sync: the disk is not measured.
func StartPostgres() (*Database, error) {
	d, err := startDatabase(sqlproc.PostgreSQL("-c", "max_connections=300", "-c", "shared_preload_libraries=pg_stat_statements"), "pgx",
		"SELECT coalesce(sum(calls), 0) FROM pg_stat_statements")
	if err != nil {
		return nil, err
	}
	if _, err := d.db.Exec("CREATE EXTENSION pg_stat_statements"); err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

// StartMariaDB starts MariaDB. It does not sync either.
func StartMariaDB() (*Database, error) {
	return startDatabase(sqlproc.MariaDB("--max-connections=300"), "mysql",
		"SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'QUESTIONS'")
}

func startDatabase(s *sqlproc.Server, driver, count string) (*Database, error) {
	if err := s.Start(); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	db, err := sql.Open(driver, s.DSN(s.Addr()))
	if err != nil {
		s.Stop()
		return nil, err
	}
	return &Database{server: s, db: db, count: count}, nil
}

// Addresses returns host:port of the server.
func (d *Database) Addresses() []string { return []string{d.server.Addr()} }

// Sample counts the statements that the server has executed. Each sample is one
// of them.
func (d *Database) Sample() (Sample, error) {
	s := Sample{Begun: clock.Now()}
	var n int64
	if err := d.db.QueryRow(d.count).Scan(&n); err != nil {
		return s, fmt.Errorf("statistics of %s: %w", d.server.Name, err)
	}
	pids, err := d.server.Pids()
	if err != nil {
		return s, err
	}
	for _, pid := range pids {
		s.CPU += clock.OfProcess(pid)
	}
	s.Commands, s.At = map[string]int64{"statements": n}, clock.Now()
	return s, nil
}

// Stop ends the server and removes its folder.
func (d *Database) Stop() {
	d.db.Close()
	d.server.Stop()
	sqlproc.CleanUp()
}
