//go:build unix

package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node/risk"
	"github.com/redlatch/redlatch/store/postgres"
)

// examine returns what is found, by check.
func examine(t *testing.T, dsn string, opts postgres.Options, exam risk.Exam) map[string]risk.Finding {
	t.Helper()
	n, err := postgres.Open(dsn, &opts)
	must(t, err)
	defer n.Close()
	exam.Name, exam.Window = "probe", 10*time.Second
	found, err := n.Examine(context.Background(), exam)
	must(t, err)
	all := map[string]risk.Finding{}
	for _, f := range found {
		all[f.Check] = f
	}
	return all
}

func TestExaminationFindsWhatEndangersLocks(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	opts := postgres.Options{Table: "examined"}
	all := examine(t, dsn, opts, risk.Exam{})
	if f := all["durability"]; f.Severity != risk.Danger || !strings.Contains(f.Found, "fsync") {
		t.Errorf("without fsync: %+v", f)
	}
	for check, severity := range map[string]risk.Severity{"rights": risk.Fine, "version": risk.Fine, "wakes": risk.Fine, "replication": risk.Fine} {
		if f := all[check]; f.Severity != severity {
			t.Errorf("%s: %+v", check, f)
		}
	}
	exec(t, databaseAt(t, dsn), "ALTER TABLE examined SET UNLOGGED")
	if f := examine(t, dsn, opts, risk.Exam{})["durability"]; f.Severity != risk.Danger || !strings.Contains(f.Found, "unlogged") {
		t.Errorf("an unlogged table: %+v", f)
	}
	if f := examine(t, dsn+"&statement_timeout=499", opts, risk.Exam{})["limits"]; f.Severity != risk.Warning || !strings.Contains(f.Found, "499 ms") {
		t.Errorf("a short statement_timeout: %+v", f)
	}
	if f := examine(t, servertest.PgBouncer(t), opts, risk.Exam{})["wakes"]; f.Severity != risk.Advice {
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
	if f := examine(t, strings.Replace(dsn, "postgres@", "locks@", 1), opts, risk.Exam{})["rights"]; f.Severity != risk.Fine {
		t.Errorf("with the rights: %+v", f)
	}
}
