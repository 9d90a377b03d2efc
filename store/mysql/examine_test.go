//go:build unix

package mysql_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

func TestExaminationFindsWhatEndangersLocks(t *testing.T) {
	dsn := servertest.MariaDB(t)
	n := openedOn(t, dsn, "examined")
	durability := func() node.Finding {
		t.Helper()
		found, err := n.Examine(context.Background(), node.Exam{Name: "probe", Window: 10 * time.Second})
		must(t, err)
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
	exec(t, dsn, "ALTER TABLE examined ENGINE = Aria")
	if f := durability(); f.Severity != node.Danger || !strings.Contains(f.Found, "Aria") {
		t.Errorf("an engine without transactions: %+v", f)
	}
}

func TestExaminationSaysWhereReplicationIsAsynchronous(t *testing.T) {
	server := servertest.OwnMariaDB(t, "--log-bin=log-bin", "--server-id=1", "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1")
	n := opened(t, server.DSN())
	replication := func(guarded bool) node.Finding {
		t.Helper()
		found, err := n.Examine(context.Background(), node.Exam{Name: "probe", Window: 10 * time.Second, Guarded: guarded})
		must(t, err)
		for _, f := range found {
			if f.Check == "replication" {
				return f
			}
		}
		t.Fatalf("nothing is said of replication: %+v", found)
		return node.Finding{}
	}
	if f := replication(false); f.Severity != node.Warning {
		t.Errorf("with the guard off: %+v", f)
	}
	if f := replication(true); f.Severity != node.Advice || !strings.Contains(f.Do, "stop the primary") {
		t.Errorf("asynchronous: %+v", f)
	}
	exec(t, server.DSN(), "SET GLOBAL rpl_semi_sync_master_timeout = 100", "SET GLOBAL rpl_semi_sync_master_enabled = ON")
	if f := replication(true); f.Severity != node.Advice {
		t.Errorf("semi-synchronous for 100 ms: %+v", f)
	}
	exec(t, server.DSN(), "SET GLOBAL rpl_semi_sync_master_timeout = 4294967295")
	if f := replication(true); f.Severity != node.Fine {
		t.Errorf("semi-synchronous: %+v", f)
	}
}
