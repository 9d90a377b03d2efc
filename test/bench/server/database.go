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

// startDatabase starts PostgreSQL or MariaDB. They do not sync: the disk is not measured.
// Each sample is one of the statements that are counted.
func startDatabase(k Kind) (*Backend, error) {
	s := servertest.NewPostgreSQL("-c", "max_connections=1500", "-c", "shared_preload_libraries=pg_stat_statements")
	driver, first, count := "pgx", "CREATE EXTENSION pg_stat_statements", "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements"
	if k == MariaDB {
		// The sizes that it has by default, in place of those of our tests. A log of 8 MB has
		// it write its pages all the time: a statement waits for milliseconds for one that is
		// being written.
		s = servertest.NewMariaDB("--max-connections=2000", "--innodb-buffer-pool-size=128M", "--innodb-log-file-size=96M")
		driver, first, count = "mysql", "DO 1", "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'QUESTIONS'"
	}
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
