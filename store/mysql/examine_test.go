//go:build unix

package mysql_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node/risk"
)

func TestExaminationFindsWhatEndangersLocks(t *testing.T) {
	dsn := servertest.MariaDB(t)
	n := openedOn(t, dsn, "examined")
	durability := func() risk.Finding {
		t.Helper()
		found, err := n.Examine(context.Background(), risk.Exam{Name: "probe", Window: 10 * time.Second})
		must(t, err)
		var of risk.Finding
		for _, f := range found {
			if f.Check == "durability" {
				of = f
			} else if f.Severity != risk.Fine {
				t.Errorf("%+v", f)
			}
		}
		return of
	}
	if f := durability(); f.Severity != risk.Danger || !strings.Contains(f.Found, "innodb_flush_log_at_trx_commit is 2") {
		t.Errorf("without waiting for the disk: %+v", f)
	}
	exec(t, dsn, "ALTER TABLE examined ENGINE = Aria")
	if f := durability(); f.Severity != risk.Danger || !strings.Contains(f.Found, "Aria") {
		t.Errorf("an engine without transactions: %+v", f)
	}
}

func TestExaminationSaysWhereReplicationIsAsynchronous(t *testing.T) {
	server := servertest.OwnMariaDB(t, "--log-bin=log-bin", "--server-id=1", "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1")
	n := opened(t, server.DSN())
	replication := func(guarded bool) risk.Finding {
		t.Helper()
		found, err := n.Examine(context.Background(), risk.Exam{Name: "probe", Window: 10 * time.Second, Guarded: guarded})
		must(t, err)
		for _, f := range found {
			if f.Check == "replication" {
				return f
			}
		}
		t.Fatalf("nothing is said of replication: %+v", found)
		return risk.Finding{}
	}
	if f := replication(false); f.Severity != risk.Warning {
		t.Errorf("with the guard off: %+v", f)
	}
	if f := replication(true); f.Severity != risk.Advice || !strings.Contains(f.Do, "stop the primary") {
		t.Errorf("asynchronous: %+v", f)
	}
	exec(t, server.DSN(), "SET GLOBAL rpl_semi_sync_master_timeout = 100", "SET GLOBAL rpl_semi_sync_master_enabled = ON")
	if f := replication(true); f.Severity != risk.Advice {
		t.Errorf("semi-synchronous for 100 ms: %+v", f)
	}
	exec(t, server.DSN(), "SET GLOBAL rpl_semi_sync_master_timeout = 4294967295")
	if f := replication(true); f.Severity != risk.Fine {
		t.Errorf("semi-synchronous: %+v", f)
	}
}
