package fence

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
)

// SQLOptions are the settings of an SQL guard. The zero value works.
type SQLOptions struct {
	// Table is the table with the guard rows: a name as it is, capitals and
	// all, or schema.name. Defaults to "redlatch_fence".
	Table string
}

// SQL is a guard in a database: a table with one row per resource. Its column
// token has the highest token seen, and is all that writers use. Readers also use
// token_reader and token_writer.
//
// The check locks the row until its transaction ends, so that of two
// transactions on one resource the second checks after the first has committed.
// This holds at READ COMMITTED and above in MySQL, MariaDB and PostgreSQL,
// always in SQLite, and also for the first two claims of a resource. A Galera
// cluster does not replicate row locks: there, write to one node only.
type SQL struct {
	db      *sql.DB
	dialect Dialect
	table   string
	text    statements
}

// NewSQL returns a guard in a database. It sends nothing.
func NewSQL(db *sql.DB, dialect Dialect, opts *SQLOptions) (*SQL, error) {
	o := optional.Value(opts)
	if db == nil {
		return nil, &node.ConfigError{Field: "db", Value: nil, Bound: "a database"}
	}
	if err := dialect.check(); err != nil {
		return nil, err
	}
	o.Table = cmp.Or(o.Table, "redlatch_fence")
	if err := checkTable(o.Table); err != nil {
		return nil, err
	}
	return &SQL{db: db, dialect: dialect, table: o.Table, text: dialect.statements(o.Table)}, nil
}

// Schema returns the statement that creates the table, for callers that run
// such statements themselves.
func (s *SQL) Schema() string { return s.text.create }

// Create creates the table if it does not exist.
func (s *SQL) Create(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, s.text.create)
	// If two create it at once, PostgreSQL lets one fail although the table
	// exists then.
	if err != nil && !errors.Is(s.db.QueryRowContext(ctx, s.text.probe).Scan(), sql.ErrNoRows) {
		return fmt.Errorf("redlatch: create table %s: %w", s.table, ended(ctx, err))
	}
	return nil
}

// Check claims the resource for the token, in a transaction of its own, or
// returns a *StaleError. It does not cover later writes: use Do or CheckTx for
// those.
func (s *SQL) Check(ctx context.Context, resource string, token node.Token) error {
	return s.claim(ctx, s.db, s.text.write, resource, token)
}

// CheckRead claims the resource for a reader's token, in a transaction of its
// own, or returns a *StaleError if a writer with a higher token has claimed it.
// Writers with lower tokens are refused from now on. What is read later may be
// a later writer's: use CheckReadTx where that matters.
func (s *SQL) CheckRead(ctx context.Context, resource string, token node.Token) error {
	return s.claim(ctx, s.db, s.text.reads, resource, token)
}

// CheckTx claims the resource for the token within a transaction, and should be
// its first statement: what the transaction reads after it is up to date, and
// its writes are committed only if the token is not stale by then. On an error
// the transaction must be rolled back.
//
// Deadlocks and serialization failures are returned as the database reports
// them. They say nothing about the token, and the transaction may be retried.
func (s *SQL) CheckTx(ctx context.Context, tx *sql.Tx, resource string, token node.Token) error {
	if tx == nil {
		return &node.ConfigError{Field: "tx", Value: nil, Bound: "a transaction"}
	}
	return s.claim(ctx, tx, s.text.write, resource, token)
}

// CheckReadTx claims the resource for a reader's token within a transaction, and
// should be its first statement: until the transaction ends, no writer can claim
// the resource. Nor can another reader, so keep it short. Apart from that it is
// to CheckRead what CheckTx is to Check.
func (s *SQL) CheckReadTx(ctx context.Context, tx *sql.Tx, resource string, token node.Token) error {
	if tx == nil {
		return &node.ConfigError{Field: "tx", Value: nil, Bound: "a transaction"}
	}
	return s.claim(ctx, tx, s.text.reads, resource, token)
}

// Do runs a function in a transaction that begins with the check, and commits
// it if the function returns nil. If Do returns a *StaleError, the function
// has not run.
func (s *SQL) Do(ctx context.Context, resource string, token node.Token, f func(tx *sql.Tx) error) error {
	// Before anything is sent, not even a BEGIN.
	if err := checkInput(resource, token); err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("redlatch: begin: %w", ended(ctx, err))
	}
	// Also if f panics. After the commit it does nothing.
	defer tx.Rollback()
	if err := s.CheckTx(ctx, tx, resource, token); err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("redlatch: commit: %w", ended(ctx, err))
	}
	return nil
}

// Highest returns the highest token that the resource was claimed with; 0 if
// it never was.
func (s *SQL) Highest(ctx context.Context, resource string) (node.Token, error) {
	if err := checkResource(resource); err != nil {
		return 0, err
	}
	highest, err := s.read(ctx, s.db, s.text.write, resource)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("redlatch: read of %q: %w", resource, ended(ctx, err))
	}
	return highest, nil
}

// An Execer runs statements: a *sql.DB, a *sql.Conn or a *sql.Tx.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (s *SQL) claim(ctx context.Context, db Execer, c claim, resource string, token node.Token) error {
	if err := checkInput(resource, token); err != nil {
		return err
	}
	highest, err := s.raise(ctx, db, c, resource, token)
	if err != nil {
		return fmt.Errorf("redlatch: check of %q: %w", resource, ended(ctx, err))
	}
	if highest > token {
		return &StaleError{Resource: resource, Token: token, Highest: highest}
	}
	return nil
}

// raise records the token in the resource's row, unless the row refuses it, and
// returns the highest token that it was compared with, its own included.
func (s *SQL) raise(ctx context.Context, db Execer, c claim, resource string, token node.Token) (node.Token, error) {
	args := []any{resource}
	for range c.args {
		args = append(args, int64(token))
	}
	result, err := db.ExecContext(ctx, c.raise, args...)
	if err != nil {
		return 0, err
	}
	if s.dialect == MySQL {
		before, err := result.LastInsertId() // 0 for a new row
		return max(node.Token(max(before, 0)), token), err
	}
	if n, err := result.RowsAffected(); n > 0 || err != nil {
		return token, err
	}
	highest, err := s.read(ctx, db, c, resource)
	if errors.Is(err, sql.ErrNoRows) || err == nil && highest <= token {
		err = errors.New("the guard row was deleted or put back meanwhile")
	}
	return highest, err
}

// read returns the token that refuses others, as it is now.
func (s *SQL) read(ctx context.Context, db Execer, c claim, resource string) (node.Token, error) {
	var token int64
	if err := db.QueryRowContext(ctx, c.read, resource).Scan(&token); err != nil {
		return 0, err
	}
	return node.Token(max(token, 0)), nil
}
