//go:build unix

package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// examine returns what is found, by check.
func examine(t *testing.T, dsn string, opts postgres.Options, exam node.Exam) map[string]node.Finding {
	t.Helper()
	n, err := postgres.Open(dsn, &opts)
	must(t, err)
	defer n.Close()
	exam.Name, exam.Window = "probe", 10*time.Second
	found, err := n.Examine(context.Background(), exam)
	must(t, err)
	all := map[string]node.Finding{}
	for _, f := range found {
		all[f.Check] = f
	}
	return all
}

func TestExaminationFindsWhatEndangersLocks(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	opts := postgres.Options{Table: "examined"}
	all := examine(t, dsn, opts, node.Exam{})
	if f := all["durability"]; f.Severity != node.Danger || !strings.Contains(f.Found, "fsync") {
		t.Errorf("without fsync: %+v", f)
	}
	for check, severity := range map[string]node.Severity{"rights": node.Fine, "version": node.Fine, "wakes": node.Fine, "replication": node.Fine} {
		if f := all[check]; f.Severity != severity {
			t.Errorf("%s: %+v", check, f)
		}
	}
	exec(t, databaseAt(t, dsn), "ALTER TABLE examined SET UNLOGGED")
	if f := examine(t, dsn, opts, node.Exam{})["durability"]; f.Severity != node.Danger || !strings.Contains(f.Found, "unlogged") {
		t.Errorf("an unlogged table: %+v", f)
	}
	if f := examine(t, dsn+"&statement_timeout=499", opts, node.Exam{})["limits"]; f.Severity != node.Warning || !strings.Contains(f.Found, "499 ms") {
		t.Errorf("a short statement_timeout: %+v", f)
	}
	if f := examine(t, servertest.PgBouncer(t), opts, node.Exam{})["wakes"]; f.Severity != node.Advice {
		t.Errorf("behind a pooler: %+v", f)
	}
}

// TestUserWithTheRightsOfTheSchemaCanLock creates the table by hand, as another
// user than the one who locks.
func TestUserWithTheRightsOfTheSchemaCanLock(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	schema, err := postgres.Schema("byhand")
	must(t, err)
	exec(t, databaseAt(t, dsn), "CREATE ROLE locks LOGIN; "+schema)
	opts := postgres.Options{Table: "byhand"}
	if f := examine(t, strings.Replace(dsn, "postgres@", "locks@", 1), opts, node.Exam{})["rights"]; f.Severity != node.Fine {
		t.Errorf("with the rights: %+v", f)
	}
}
