//go:build unix

package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/fence"
)

// accounts is a table with a token column, and the rows 1, never fenced, and
// 2, written with token 6.
func accounts(t *testing.T, d database) (*sql.DB, *fence.Column, string) {
	t.Helper()
	db, table := d.open(t), newTable()
	mustExec(t, db, "CREATE TABLE "+table+" (id INT PRIMARY KEY, balance INT, token BIGINT)")
	mustExec(t, db, "INSERT INTO "+table+" VALUES (1, 10, NULL), (2, 20, 6)")
	column, err := fence.NewColumn(d.dialect, table, "id", "token")
	must(t, err)
	return db, column, table
}

// first returns the placeholder of a statement's first argument.
func first(d fence.Dialect) string {
	if d == fence.PostgreSQL {
		return "$1"
	}
	return "?"
}

func balance(t *testing.T, db *sql.DB, table string, id int) (balance int, token int64) {
	t.Helper()
	must(t, db.QueryRow("SELECT balance, COALESCE(token, 0) FROM "+table+" WHERE id = "+string(rune('0'+id))).Scan(&balance, &token))
	return balance, token
}

// TestOneStatementChecksAndWrites is about Update, and about statements of one's own.
func TestOneStatementChecksAndWrites(t *testing.T) {
	ctx := context.Background()
	for _, d := range append(databases, variants...) {
		t.Run(d.name, func(t *testing.T) {
			db, column, table := accounts(t, d)
			has := func(id, want int, with int64) {
				t.Helper()
				if b, token := balance(t, db, table, id); b != want || token != with {
					t.Errorf("row %d: balance %d, token %d, want %d and %d", id, b, token, want, with)
				}
			}
			set := "balance = " + first(d.dialect)
			must(t, column.Update(ctx, db, 1, 5, set, 11))
			has(1, 11, 5)
			err := column.Update(ctx, db, 2, 5, set, 99)
			wantStale(t, err, 5, 6)
			if !strings.Contains(err.Error(), table+"/2") {
				t.Errorf("%v does not name the row", err)
			}
			has(2, 20, 6)
			if err := column.Update(ctx, db, 3, 7, set, 1); !errors.Is(err, sql.ErrNoRows) || errors.Is(err, fence.ErrStale) {
				t.Errorf("a row that is not there: %v", err)
			}
			if err := column.Update(ctx, db, 1, 6, "nonsense = 1"); err == nil || errors.Is(err, fence.ErrStale) {
				t.Errorf("a broken statement: %v", err)
			}

			deletion := "DELETE FROM " + table + " WHERE id = 2 AND " + column.Where(1)
			wantStale(t, column.Exec(ctx, db, 2, 5, deletion, 5), 5, 6)
			must(t, column.Exec(ctx, db, 2, 6, deletion, 6))
			update := "UPDATE " + table + " SET balance = balance + 1, " + column.Set(1) + " WHERE id = 1 AND " + column.Where(2)
			must(t, column.Exec(ctx, db, 1, 8, update, 8, 8))
			wantStale(t, column.Exec(ctx, db, 1, 7, update, 7, 7), 7, 8)
			has(1, 12, 8)
		})
	}
}
