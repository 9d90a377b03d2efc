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

func TestTablesMayBearOddNames(t *testing.T) {
	ctx := context.Background()
	schema := map[fence.Dialect]string{fence.SQLite: "main", fence.MySQL: "test", fence.PostgreSQL: "public"}
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := d.open(t)
			for _, table := range []string{"order", "Select", "_1", schema[d.dialect] + ".Group", strings.Repeat("n", 63)} {
				guard, err := fence.NewSQL(db, d.dialect, &fence.SQLOptions{Table: table})
				must(t, err)
				if err := guard.Check(ctx, "r", 1); err == nil || errors.Is(err, fence.ErrStale) || errors.Is(err, redlatch.ErrConfig) {
					t.Errorf("%s, which is missing: got %v", table, err)
				}
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

func TestNamesThatCannotBeUsedAreRefused(t *testing.T) {
	db := sqliteDB.open(t)
	guard := func(db *sql.DB, dialect fence.Dialect, table string) error {
		_, err := fence.NewSQL(db, dialect, &fence.SQLOptions{Table: table})
		return err
	}
	column := func(dialect fence.Dialect, table, key, token string) error {
		_, err := fence.NewColumn(dialect, table, key, token)
		return err
	}
	errs := map[string][]error{
		"db":           {guard(nil, fence.SQLite, "")},
		"dialect":      {guard(db, "oracle", ""), guard(db, "", ""), guard(db, "SQLite", ""), column("db2", "t", "id", "token")},
		"table":        {column(fence.SQLite, "t t", "id", "token")},
		"key":          {column(fence.SQLite, "t", "id = 1 OR id", "token")},
		"token column": {column(fence.SQLite, "t", "id", "")},
		"tx":           {newSQL(t, sqliteDB, db).CheckTx(t.Context(), nil, "r", 1), newSQL(t, sqliteDB, db).CheckReadTx(t.Context(), nil, "r", 1)},
	}
	for _, table := range []string{"a b", "a;drop table b", `a"b`, "a.b.c", "1a", "a\n", strings.Repeat("n", 64)} {
		errs["table"] = append(errs["table"], guard(db, fence.SQLite, table))
	}
	for field, all := range errs {
		for i, err := range all {
			if bad, ok := errors.AsType[*redlatch.ConfigError](err); !ok || bad.Field != field || bad.Bound == "" {
				t.Errorf("%s, %d: got %v", field, i, err)
			}
		}
	}
}
