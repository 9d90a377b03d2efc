package sqlite

import "database/sql"

// query is the text of a statement. A statement is compiled when it is first
// used, so that a process that needs two of them does not pay for all.
type query string

const (
	// ?1 name. One statement, so that a reader needs no transaction. SQLite would
	// compile an outer join on a parameter each time it is run.
	selectName query = `SELECT boot, floor, (SELECT version FROM lock WHERE name = ?1),
		(SELECT state FROM lock WHERE name = ?1) FROM meta`

	// ?1 name, ?2 version, ?3 state, ?4 the version that was read, ?5 the boot, ?6 the
	// floor: a row that is missing again may have been removed meanwhile
	swapName query = `
		INSERT INTO lock (name, version, state) SELECT ?1, ?2, ?3 FROM meta
		WHERE boot = ?5 AND floor = ?6 AND coalesce((SELECT version FROM lock WHERE name = ?1), '') = ?4
		ON CONFLICT (name) DO UPDATE SET version = excluded.version, state = excluded.state RETURNING 1`

	// ?1 name, ?2 version, ?3 the boot
	deleteName query = `DELETE FROM lock WHERE name = ?1 AND version = ?2 AND ?3 = (SELECT boot FROM meta)`

	// ?1 token, ?2 the boot
	raiseFloor query = `UPDATE meta SET floor = ?1 WHERE floor < ?1 AND boot = ?2`

	// ?1 name, ?2 how many
	selectNames query = `SELECT name, version, state FROM lock WHERE name > ?1 ORDER BY name LIMIT ?2`
)

// statement returns the compiled query.
func (s *store) statement(q query) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stmt := s.stmts[q]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.db.Prepare(string(q))
	if err == nil {
		s.stmts[q] = stmt
	}
	return stmt, err
}

// exec runs a query that returns nothing. It takes no context: it does not wait for
// other processes.
func (s *store) exec(q query, args ...any) error {
	stmt, err := s.statement(q)
	if err == nil {
		_, err = stmt.Exec(args...)
	}
	return err
}

// each runs a query and calls row for each of its rows.
func (s *store) each(q query, args []any, row func(scan func(...any) error) error) error {
	stmt, err := s.statement(q)
	if err != nil {
		return err
	}
	rows, err := stmt.Query(args...)
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
