//go:build unix

package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/node"
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

func TestOneUpdateChecksAndWrites(t *testing.T) {
	ctx := context.Background()
	for _, d := range append(databases, variants...) {
		t.Run(d.name, func(t *testing.T) {
			db, column, table := accounts(t, d)
			set := "balance = " + first(d.dialect)
			must(t, column.Update(ctx, db, 1, 5, set, 11))
			if b, token := balance(t, db, table, 1); b != 11 || token != 5 {
				t.Errorf("balance %d, token %d", b, token)
			}
			// The same values again: MySQL reports that no row was affected.
			if err := column.Update(ctx, db, 1, 5, set, 11); err != nil {
				t.Errorf("the same again: %v", err)
			}
			err := column.Update(ctx, db, 2, 5, set, 99)
			wantStale(t, err, 5, 6)
			if !strings.Contains(err.Error(), table+"/2") {
				t.Errorf("%v does not name the row", err)
			}
			if b, token := balance(t, db, table, 2); b != 20 || token != 6 {
				t.Errorf("the stale write left balance %d, token %d", b, token)
			}
			if err := column.Update(ctx, db, 3, 7, set, 1); !errors.Is(err, sql.ErrNoRows) || errors.Is(err, fence.ErrStale) {
				t.Errorf("a row that is not there: %v", err)
			}
			for _, token := range []node.Token{0, node.MaxToken + 1} {
				if err := column.Update(ctx, db, 1, token, set, 1); !errors.Is(err, node.ErrConfig) {
					t.Errorf("token %d: %v", token, err)
				}
			}
			if b, token := balance(t, db, table, 1); b != 11 || token != 5 {
				t.Errorf("a bad token was written: balance %d, token %d", b, token)
			}
			if err := column.Update(ctx, db, 1, 6, "nonsense = 1"); err == nil || errors.Is(err, fence.ErrStale) {
				t.Errorf("a broken statement: %v", err)
			}
		})
	}
}

func TestStatementsOfOnesOwnAreFencedToo(t *testing.T) {
	ctx := context.Background()
	for _, d := range append(databases, variants...) {
		t.Run(d.name, func(t *testing.T) {
			db, column, table := accounts(t, d)
			deletion := "DELETE FROM " + table + " WHERE id = 2 AND " + column.Where(1)
			wantStale(t, column.Exec(ctx, db, 2, 5, deletion, 5), 5, 6)
			must(t, column.Exec(ctx, db, 2, 6, deletion, 6))
			update := "UPDATE " + table + " SET balance = balance + 1, " + column.Set(1) + " WHERE id = 1 AND " + column.Where(2)
			must(t, column.Exec(ctx, db, 1, 8, update, 8, 8))
			wantStale(t, column.Exec(ctx, db, 1, 7, update, 7, 7), 7, 8)
			if b, token := balance(t, db, table, 1); b != 11 || token != 8 {
				t.Errorf("balance %d, token %d", b, token)
			}
		})
	}
}

// TestAColumnInATransactionSeesPastItsSnapshot has the row written by a newer
// holder after the older one's transaction began to read.
func TestAColumnInATransactionSeesPastItsSnapshot(t *testing.T) {
	ctx := context.Background()
	for _, d := range []database{mariaDB, postgresDB} {
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
			t.Run(d.name+", "+level.String(), func(t *testing.T) {
				db, column, table := accounts(t, d)
				set := "balance = " + first(d.dialect)
				older, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
				must(t, err)
				defer older.Rollback()
				var n int
				must(t, older.QueryRow("SELECT balance FROM "+table+" WHERE id = 1").Scan(&n))
				must(t, column.Update(ctx, db, 1, 9, set, 90))
				err = column.Update(ctx, older, 1, 8, set, 80)
				if !serialization(err) {
					wantStale(t, err, 8, 9)
				}
				if b, _ := balance(t, db, table, 1); b != 90 {
					t.Errorf("balance %d", b)
				}
			})
		}
	}
}

func TestNewColumnRefusesWhatItCannotUse(t *testing.T) {
	for field, c := range map[string][4]string{
		"dialect":      {"db2", "t", "id", "token"},
		"table":        {"sqlite", "t t", "id", "token"},
		"key":          {"sqlite", "t", "id = 1 OR id", "token"},
		"token column": {"sqlite", "t", "id", ""},
	} {
		_, err := fence.NewColumn(fence.Dialect(c[0]), c[1], c[2], c[3])
		var bad *node.ConfigError
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%v: got %v", c, err)
		}
	}
}
