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

// startPostgres starts PostgreSQL. It does not sync: the disk is not measured.
func startPostgres() (*Backend, error) {
	return startDatabase(servertest.NewPostgreSQL("-c", "max_connections=1500", "-c", "shared_preload_libraries=pg_stat_statements"), "pgx",
		"CREATE EXTENSION pg_stat_statements", "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements")
}

// startMariaDB starts MariaDB. It does not sync either.
func startMariaDB() (*Backend, error) {
	return startDatabase(servertest.NewMariaDB("--max-connections=2000"), "mysql",
		"DO 1", "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'QUESTIONS'")
}

// startDatabase starts a database server. The query count returns how many statements it
// has executed; each sample is one of them.
func startDatabase(s *servertest.Database, driver, first, count string) (*Backend, error) {
	var db *sql.DB
	b := &Backend{pids: s.Pids, Stop: func() {
		if db != nil {
			db.Close()
		}
		s.Stop()
		servertest.CleanUp()
	}}
	err := s.Start()
	if err == nil {
		db, err = sql.Open(driver, s.DSN(s.Addr()))
	}
	if err == nil {
		_, err = db.Exec(first)
	}
	if err != nil {
		b.Stop()
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	b.Addresses = []string{s.Addr()}
	b.count = func(sum *Sample) error {
		var n int64
		err := db.QueryRow(count).Scan(&n)
		sum.Commands["statements"] = n
		return err
	}
	return b, nil
}
