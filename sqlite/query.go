package sqlite

import (
	"context"
	"database/sql"
)

// query is the text of a statement. A statement is compiled when it is first
// used, so that a process that needs two of them does not pay for all.
type query string

const (
	beginWrite query = `BEGIN IMMEDIATE`
	beginRead  query = `BEGIN`
	commit     query = `COMMIT`
	rollback   query = `ROLLBACK`

	// ?1 name. It is separate from selectLock, because SQLite would compile an
	// outer join on a parameter each time it is run.
	selectMeta query = `SELECT boot, floor, EXISTS (SELECT 1 FROM waiter WHERE name = ?1) FROM meta`

	// ?1 name
	selectLock query = `
		SELECT row, value, until, fence, kept_until, token, floor, several, released FROM lock WHERE name = ?1`

	// ?1 name, ?2 value, ?3 until, ?4 fence, ?5 kept_until, ?6 token, ?7 floor,
	// ?8 several, ?9 released
	insertLock query = `
		INSERT INTO lock (name, value, until, fence, kept_until, token, floor, several, released)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)`

	// ?1 row, and the others as above
	updateLock query = `
		UPDATE lock SET value = ?2, until = ?3, fence = ?4, kept_until = ?5, token = ?6, floor = ?7, several = ?8, released = ?9
		WHERE row = ?1`

	// ?1 row
	deleteLock query = `DELETE FROM lock WHERE row = ?1`
)

// statement returns the compiled query.
func (n *Node) statement(q query) (*sql.Stmt, error) {
	if s := n.stmts[q]; s != nil {
		return s, nil
	}
	s, err := n.conn.PrepareContext(context.Background(), string(q))
	if err != nil {
		return nil, err
	}
	n.stmts[q] = s
	return s, nil
}

// exec runs a query that returns nothing. It takes no context: only a begin may
// have to wait, and a begin is retried instead.
func (n *Node) exec(q query, args ...any) error {
	s, err := n.statement(q)
	if err == nil {
		_, err = s.ExecContext(context.Background(), args...)
	}
	return err
}

// queryRow runs a query that returns at most one row.
func (n *Node) queryRow(q query, args []any, dest ...any) (found bool, err error) {
	s, err := n.statement(q)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(context.Background(), args...).Scan(dest...)
	if err == sql.ErrNoRows {
		return false, nil
	}
	return err == nil, err
}
