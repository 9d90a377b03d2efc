package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/node"
)

// Column is a token column in a table of the caller's own: each row has the
// token with which it was last written, and is its own guard. One UPDATE then
// checks and writes, with no guard row and no transaction.
//
// The column is a BIGINT (INTEGER in SQLite), and NULL or 0 in rows that no
// holder has written yet.
type Column struct {
	dialect Dialect
	table   string
	key     string
	token   string
}

// NewColumn returns the token column of a table. key is the column that
// identifies its rows. Names are used as they are, with their capitals.
func NewColumn(dialect Dialect, table, key, token string) (*Column, error) {
	if err := errors.Join(dialect.check(), checkTable(table), checkColumn("key", key), checkColumn("token column", token)); err != nil {
		return nil, err
	}
	return &Column{dialect, table, key, token}, nil
}

// Update writes the row with the given key, unless it was written with a
// higher token: then it returns a *StaleError. set is what UPDATE sets beside
// the token, with placeholders for args:
//
//	err := accounts.Update(ctx, db, 42, token, "balance = $1, owner = $2", 100, "ann")
//
// It returns sql.ErrNoRows if there is no such row.
func (c *Column) Update(ctx context.Context, db Execer, id any, token node.Token, set string, args ...any) error {
	n := len(args)
	text := "UPDATE " + c.dialect.quote(c.table) + " SET " + set + ", " + c.Set(n+1) +
		" WHERE " + c.dialect.quote(c.key) + " = " + c.dialect.place(n+2) + " AND " + c.Where(n+3)
	args = append(args[:n:n], int64(token), id, int64(token))
	return c.Exec(ctx, db, id, token, text, args...)
}

// Set returns the assignment that an UPDATE of one's own needs: token = ?, the
// token being its n-th argument. Only PostgreSQL numbers them.
func (c *Column) Set(n int) string {
	return c.dialect.quote(c.token) + " = " + c.dialect.place(n)
}

// Where returns the condition that an UPDATE or DELETE of one's own needs:
// token <= ?, the token being its n-th argument.
func (c *Column) Where(n int) string {
	return "COALESCE(" + c.dialect.quote(c.token) + ", 0) <= " + c.dialect.place(n)
}

// Exec runs an UPDATE or DELETE of one's own that contains the texts of Where
// and, if it is an UPDATE, of Set, and whose other condition is the row's key.
// args contain the token where the statement needs it. Exec also takes the
// token and the key by themselves, to find out why no row was written: it
// returns a *StaleError if the row has a higher token, and sql.ErrNoRows if
// there is no such row.
func (c *Column) Exec(ctx context.Context, db Execer, id any, token node.Token, query string, args ...any) error {
	if err := checkToken(token); err != nil {
		return err
	}
	result, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("redlatch: write to %s: %w", c.table, ended(ctx, err))
	}
	if affected, err := result.RowsAffected(); affected > 0 || err != nil {
		return err
	}
	var highest sql.NullInt64
	err = db.QueryRowContext(ctx, "SELECT "+c.dialect.quote(c.token)+" FROM "+c.dialect.quote(c.table)+
		" WHERE "+c.dialect.quote(c.key)+" = "+c.dialect.place(1)+c.dialect.forUpdate(), id).Scan(&highest)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("redlatch: read of %s: %w", c.table, ended(ctx, err))
	case err == nil && highest.Int64 > int64(token):
		return &StaleError{Resource: fmt.Sprintf("%s/%v", c.table, id), Token: token, Highest: node.Token(highest.Int64)}
	case err == nil && highest.Int64 == int64(token) && c.dialect == MySQL:
		// MySQL does not count a row that already had these values.
		return nil
	}
	return fmt.Errorf("redlatch: no row of %s with %s %v was written: %w", c.table, c.key, id, sql.ErrNoRows)
}
