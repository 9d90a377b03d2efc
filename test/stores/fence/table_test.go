//go:build unix

package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
)

func TestCreateMayBeCalledByAllAtOnce(t *testing.T) {
	ctx := context.Background()
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db, table := d.open(t), newTable()
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					guard, err := fence.NewSQL(db, d.dialect, &fence.SQLOptions{Table: table})
					if err == nil {
						err = guard.Create(ctx)
					}
					if err == nil {
						err = guard.Check(ctx, "r", 1)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestATableThatIsMissingIsNoVerdict(t *testing.T) {
	ctx := context.Background()
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			guard, err := fence.NewSQL(d.open(t), d.dialect, &fence.SQLOptions{Table: newTable()})
			must(t, err)
			if err := guard.Check(ctx, "r", 1); err == nil || errors.Is(err, fence.ErrStale) || errors.Is(err, redlatch.ErrConfig) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTablesMayBearOddNames(t *testing.T) {
	ctx := context.Background()
	schema := map[fence.Dialect]string{fence.SQLite: "main", fence.MySQL: "test", fence.PostgreSQL: "public"}
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := d.open(t)
			for _, table := range []string{"order", "Select", "_1", schema[d.dialect] + ".Group", strings.Repeat("n", 63)} {
				guard, err := fence.NewSQL(db, d.dialect, &fence.SQLOptions{Table: table})
				must(t, err)
				if err := errors.Join(guard.Create(ctx), guard.Create(ctx), guard.Check(ctx, "r", 2)); err != nil {
					t.Errorf("%s: %v", table, err)
				}
				wantStale(t, guard.Check(ctx, "r", 1), 1, 2)
				if !strings.Contains(guard.Schema(), "CREATE TABLE") {
					t.Errorf("%s: the schema is %q", table, guard.Schema())
				}
			}
		})
	}
}

func TestNewSQLRefusesWhatItCannotUse(t *testing.T) {
	db := sqliteDB.open(t)
	for _, c := range []struct {
		field   string
		db      *sql.DB
		dialect fence.Dialect
		table   string
	}{
		{"db", nil, fence.SQLite, ""},
		{"dialect", db, "oracle", ""},
		{"dialect", db, "", ""},
		{"dialect", db, "SQLite", ""},
		{"table", db, fence.SQLite, "a b"},
		{"table", db, fence.SQLite, "a;drop table b"},
		{"table", db, fence.SQLite, `a"b`},
		{"table", db, fence.SQLite, "a.b.c"},
		{"table", db, fence.SQLite, "1a"},
		{"table", db, fence.SQLite, "a\n"},
		{"table", db, fence.SQLite, strings.Repeat("n", 64)},
	} {
		_, err := fence.NewSQL(c.db, c.dialect, &fence.SQLOptions{Table: c.table})
		var bad *redlatch.ConfigError
		if !errors.As(err, &bad) || bad.Field != c.field || bad.Bound == "" {
			t.Errorf("dialect %q, table %q: got %v", c.dialect, c.table, err)
		}
	}
	guard := newSQL(t, sqliteDB, db)
	if err := guard.CheckTx(context.Background(), nil, "r", 1); !errors.Is(err, redlatch.ErrConfig) {
		t.Errorf("no transaction: %v", err)
	}
}
