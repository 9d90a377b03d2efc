//go:build unix

package server

import (
	"database/sql"
	"fmt"

	// The drivers by which the counters are read.
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// database is one database server.
type database struct {
	server *servertest.Database
	db     *sql.DB
	count  string // the query for how many statements it has executed
}

// startPostgres starts PostgreSQL. It does not sync: the disk is not measured.
func startPostgres() (Backend, error) {
	return startDatabase(servertest.NewPostgreSQL("-c", "max_connections=1500", "-c", "shared_preload_libraries=pg_stat_statements"), "pgx",
		"CREATE EXTENSION pg_stat_statements", "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements")
}

// startMariaDB starts MariaDB. It does not sync either.
func startMariaDB() (Backend, error) {
	return startDatabase(servertest.NewMariaDB("--max-connections=2000"), "mysql",
		"DO 1", "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'QUESTIONS'")
}

func startDatabase(s *servertest.Database, driver, first, count string) (Backend, error) {
	d := &database{server: s, count: count}
	err := s.Start()
	if err == nil {
		d.db, err = sql.Open(driver, s.DSN(s.Addr()))
	}
	if err == nil {
		_, err = d.db.Exec(first)
	}
	if err != nil {
		d.Stop()
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	return d, nil
}

func (d *database) Addresses() []string { return []string{d.server.Addr()} }

// Sample counts the statements that the server has executed. Each sample is one
// of them.
func (d *database) Sample() (Sample, error) {
	pids, err := d.server.Pids()
	if err != nil {
		return Sample{}, err
	}
	return sample(pids, func(s *Sample) error {
		var n int64
		err := d.db.QueryRow(d.count).Scan(&n)
		s.Commands["statements"] = n
		return err
	})
}

func (d *database) Stop() {
	if d.db != nil {
		d.db.Close()
	}
	d.server.Stop()
	servertest.CleanUp()
}
