//go:build unix

package mysql_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/sqltest"
	"github.com/redlatch/redlatch/mysql"
	"github.com/redlatch/redlatch/node"
)

func TestExaminationFindsWhatEndangersLocks(t *testing.T) {
	dsn := sqltest.MariaDB(t)
	n, err := mysql.New(dsn, mysql.Options{Table: "examined"})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	durability := func() node.Finding {
		t.Helper()
		found, err := n.Examine(context.Background(), node.Exam{Name: "probe", Window: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		var of node.Finding
		for _, f := range found {
			if f.Check == "durability" {
				of = f
			} else if f.Severity != node.Fine {
				t.Errorf("%+v", f)
			}
		}
		return of
	}
	if f := durability(); f.Severity != node.Danger || !strings.Contains(f.Found, "innodb_flush_log_at_trx_commit is 2") {
		t.Errorf("without waiting for the disk: %+v", f)
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("ALTER TABLE examined ENGINE = Aria"); err != nil {
		t.Fatal(err)
	}
	if f := durability(); f.Severity != node.Danger || !strings.Contains(f.Found, "Aria") {
		t.Errorf("an engine without transactions: %+v", f)
	}
}
