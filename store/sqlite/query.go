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
	commit     query = `COMMIT`
	rollback   query = `ROLLBACK`

	// ?1 name. One statement, so that a reader needs no transaction. SQLite would
	// compile an outer join on a parameter each time it is run.
	selectName query = `SELECT boot, floor, (SELECT version FROM lock WHERE name = ?1),
		(SELECT state FROM lock WHERE name = ?1) FROM meta`

	// ?1 name, ?2 version, ?3 state, ?4 the version that was read, ?5 the boot
	swapName query = `
		INSERT INTO lock (name, version, state) SELECT ?1, ?2, ?3 FROM meta
		WHERE boot = ?5 AND coalesce((SELECT version FROM lock WHERE name = ?1), '') = ?4
		ON CONFLICT (name) DO UPDATE SET version = excluded.version, state = excluded.state RETURNING 1`

	// ?1 name, ?2 version
	deleteName query = `DELETE FROM lock WHERE name = ?1 AND version = ?2`

	// ?1 name, ?2 how many
	selectNames query = `SELECT name, version, state FROM lock WHERE name > ?1 ORDER BY name LIMIT ?2`
)

// statement returns the compiled query.
func (s *store) statement(q query) (*sql.Stmt, error) {
	if stmt := s.stmts[q]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.conn.PrepareContext(context.Background(), string(q))
	if err != nil {
		return nil, err
	}
	s.stmts[q] = stmt
	return stmt, nil
}

// exec runs a query that returns nothing. It takes no context: only a begin may
// have to wait, and a begin is retried instead.
func (s *store) exec(q query, args ...any) error {
	stmt, err := s.statement(q)
	if err == nil {
		_, err = stmt.ExecContext(context.Background(), args...)
	}
	return err
}

// each runs a query and calls row for each of its rows.
func (s *store) each(q query, args []any, row func(scan func(...any) error) error) error {
	stmt, err := s.statement(q)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
