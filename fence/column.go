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
// holder has written yet. If there are readers, the table needs two more such
// columns, which are NULL by default: see CheckRead.
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
	wrote, err := c.exec(ctx, db, query, args)
	if wrote || err != nil {
		return err
	}
	highest, err := c.read(ctx, db, id, token, c.dialect.quote(c.token))
	if err == nil && highest == int64(token) && c.dialect == MySQL {
		// MySQL does not count a row that already had these values.
		return nil
	}
	return c.unwritten(id, err)
}

// CheckRead claims the row for a reader's token, or returns a *StaleError if it
// was written with a higher one; see ReadGuard. It changes nothing in the row but
// the token column and two columns that have its name with _reader and _writer
// after it. Writers do not use those: they are compared with the token column,
// which then has the highest token of all. In a transaction CheckRead should be
// the first statement; it locks the row until the end. It returns sql.ErrNoRows
// if there is no such row.
func (c *Column) CheckRead(ctx context.Context, db Execer, id any, token node.Token) error {
	names := c.dialect.columns(c.token)
	if err := errors.Join(checkToken(token), checkColumn("token column with _reader after it", c.token+"_reader")); err != nil {
		return err
	}
	// The highest writer's comes first: MySQL's assignments see those before.
	text := "UPDATE " + c.dialect.quote(c.table) + " SET " + names.writer + " = " + names.highestWriter("") +
		", " + names.token + " = " + names.highest("", c.dialect.place(1), c.dialect.place(2)) +
		", " + names.reader + " = " + names.highest("", c.dialect.place(3), c.dialect.place(4)) +
		" WHERE " + c.dialect.quote(c.key) + " = " + c.dialect.place(5) + " AND " + names.highestWriter("") + " <= " + c.dialect.place(6)
	t := int64(token)
	wrote, err := c.exec(ctx, db, text, []any{t, t, t, t, id, t})
	if wrote || err != nil {
		return err
	}
	_, err = c.read(ctx, db, id, token, names.highestWriter(""))
	if err == nil && c.dialect == MySQL {
		return nil // the row had these values, see Exec
	}
	return c.unwritten(id, err)
}

// exec reports whether a statement wrote a row.
func (c *Column) exec(ctx context.Context, db Execer, query string, args []any) (bool, error) {
	result, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return false, fmt.Errorf("redlatch: write to %s: %w", c.table, ended(ctx, err))
	}
	affected, err := result.RowsAffected()
	return affected > 0, err
}

// read returns the number that a row compares the token with, and a *StaleError
// if it is higher.
func (c *Column) read(ctx context.Context, db Execer, id any, token node.Token, number string) (int64, error) {
	var highest sql.NullInt64
	err := db.QueryRowContext(ctx, "SELECT "+number+" FROM "+c.dialect.quote(c.table)+
		" WHERE "+c.dialect.quote(c.key)+" = "+c.dialect.place(1)+c.dialect.forUpdate(), id).Scan(&highest)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return 0, fmt.Errorf("redlatch: read of %s: %w", c.table, ended(ctx, err))
	case err == nil && highest.Int64 > int64(token):
		return 0, &StaleError{Resource: fmt.Sprintf("%s/%v", c.table, id), Token: token, Highest: node.Token(highest.Int64)}
	}
	return highest.Int64, err
}

// unwritten returns the error of a statement that wrote no row, after read.
func (c *Column) unwritten(id any, err error) error {
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return fmt.Errorf("redlatch: no row of %s with %s %v was written: %w", c.table, c.key, id, sql.ErrNoRows)
}
