//go:build unix

package chaos

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
)

// Store says where the resource is: a database of any supported kind.
type Store struct {
	Driver  string        `json:"driver"` // of database/sql; the program imports it
	DSN     string        `json:"dsn"`
	Dialect fence.Dialect `json:"dialect"`
	Table   string        `json:"table"` // the prefix of its tables' names
}

// SQLiteStore is a resource in a file. The program imports modernc.org/sqlite.
func SQLiteStore(path string) Store {
	return Store{
		Driver: "sqlite", Dialect: fence.SQLite, Table: "chaos",
		// A writer that is paused in its transaction blocks all others for as
		// long. Nothing is synced: the file is temporary.
		DSN: "file:" + path + "?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate",
	}
}

// resource makes the damage of a stale write visible. It has a counter for each
// part, which is read, and later written as one more than was read, and a log
// of all accepted steps. Unless it is unfenced, the token is checked at each of
// them: for every part that the lease covers, a reader's by the rule for readers.
type resource struct {
	Store
	db     *sql.DB
	guard  *fence.SQL
	fenced bool
}

// writeLimit is how long a write may take. Others may be paused in the middle
// of theirs.
const writeLimit = 30 * time.Second

func (s Store) open(fenced bool) (*resource, error) {
	db, err := sql.Open(s.Driver, s.DSN)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2)
	guard, err := fence.NewSQL(db, s.Dialect, &fence.SQLOptions{Table: s.Table + "_fence"})
	if err != nil {
		db.Close()
		return nil, err
	}
	return &resource{Store: s, db: db, guard: guard, fenced: fenced}, nil
}

// create creates the tables again, with a counter of 0 for each part.
func (r *resource) create(ctx context.Context, parts []string) error {
	number := "INTEGER PRIMARY KEY AUTOINCREMENT"
	switch r.Dialect {
	case fence.MySQL:
		number = "BIGINT AUTO_INCREMENT PRIMARY KEY"
	case fence.PostgreSQL:
		number = "BIGSERIAL PRIMARY KEY"
	}
	for _, text := range []string{
		"DROP TABLE IF EXISTS " + r.Table + "_fence", "DROP TABLE IF EXISTS " + r.Table + "_counter", "DROP TABLE IF EXISTS " + r.Table + "_log",
		"CREATE TABLE " + r.Table + "_counter (name VARCHAR(80) PRIMARY KEY, value BIGINT NOT NULL)",
		"CREATE TABLE " + r.Table + "_log (id " + number + ", name VARCHAR(80) NOT NULL, step VARCHAR(8) NOT NULL, token BIGINT NOT NULL, client BIGINT NOT NULL, was BIGINT NOT NULL, is_now BIGINT NOT NULL)",
	} {
		if _, err := r.db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("the resource cannot be set up: %w", err)
		}
	}
	for _, part := range parts {
		if _, err := r.db.ExecContext(ctx, r.text("INSERT INTO %_counter (name, value) VALUES (?, 0)"), part); err != nil {
			return fmt.Errorf("the resource cannot be set up: %w", err)
		}
	}
	return r.guard.Create(ctx)
}

// text puts the tables' names and the dialect's placeholders into a statement.
func (r *resource) text(s string) string {
	s = strings.ReplaceAll(s, "%", r.Table)
	for n := 1; r.Dialect == fence.PostgreSQL && strings.Contains(s, "?"); n++ {
		s = strings.Replace(s, "?", fmt.Sprintf("$%d", n), 1)
	}
	return s
}

// caller is a holder at the resource.
type caller struct {
	client int
	token  redlatch.Token
	parts  []string // what its lease covers
	of     string   // whose counter it uses: one of them
}

// do runs f in a transaction, which begins with the check of the token for each
// part, unless the resource is unfenced.
func (r *resource) do(c caller, step Step, f func(*sql.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	if r.fenced && step != Look {
		return r.guard.Do(ctx, c.parts[0], c.token, func(tx *sql.Tx) error {
			for _, part := range c.parts[1:] {
				if err := r.guard.CheckTx(ctx, tx, part, c.token); err != nil {
					return err
				}
			}
			return f(tx)
		})
	}
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, part := range c.parts {
		if !r.fenced {
			break
		}
		if err := r.guard.CheckReadTx(ctx, tx, part, c.token); err != nil {
			return err
		}
	}
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// look reads the counters of all parts, and logs that: Look or Claim. It returns
// one counter.
func (r *resource) look(c caller, step Step) (value int64, err error) {
	err = r.do(c, step, func(tx *sql.Tx) error {
		for _, part := range c.parts {
			var is int64
			if err := tx.QueryRow(r.text("SELECT value FROM %_counter WHERE name = ?"), part).Scan(&is); err != nil {
				return err
			}
			if part == c.of {
				value = is
			}
			if err := r.log(tx, c, part, step, is, is); err != nil {
				return err
			}
		}
		return nil
	})
	return value, err
}

// write sets the counter to one more than was read, and logs it.
func (r *resource) write(c caller, was int64) error {
	return r.do(c, Write, func(tx *sql.Tx) error {
		if _, err := tx.Exec(r.text("UPDATE %_counter SET value = ? WHERE name = ?"), was+1, c.of); err != nil {
			return err
		}
		return r.log(tx, c, c.of, Write, was, was+1)
	})
}

func (r *resource) log(tx *sql.Tx, c caller, part string, step Step, was, is int64) error {
	_, err := tx.Exec(r.text("INSERT INTO %_log (name, step, token, client, was, is_now) VALUES (?, ?, ?, ?, ?, ?)"),
		part, string(step), int64(c.token), c.client, was, is)
	return err
}

// rows returns all accepted steps in their order, and the counters.
func (r *resource) rows(ctx context.Context) (rows []Row, counters map[string]int64, err error) {
	err = r.each(ctx, "SELECT name, step, token, client, was, is_now FROM %_log ORDER BY id", func(list *sql.Rows) error {
		rows = append(rows, Row{})
		row := &rows[len(rows)-1]
		return list.Scan(&row.Name, &row.Step, &row.Token, &row.Client, &row.Was, &row.Is)
	})
	if err != nil {
		return nil, nil, err
	}
	counters = map[string]int64{}
	err = r.each(ctx, "SELECT name, value FROM %_counter", func(list *sql.Rows) error {
		var name string
		var value int64
		err := list.Scan(&name, &value)
		counters[name] = value
		return err
	})
	return rows, counters, err
}

// each calls scan with each row that a query returns.
func (r *resource) each(ctx context.Context, query string, scan func(*sql.Rows) error) error {
	list, err := r.db.QueryContext(ctx, r.text(query))
	if err != nil {
		return err
	}
	defer list.Close()
	for list.Next() {
		if err := scan(list); err != nil {
			return err
		}
	}
	return list.Err()
}
