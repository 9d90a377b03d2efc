//go:build unix

package chaos

import (
	"context"
	"database/sql"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
)

// resource makes the damage of a stale write visible. It has a counter for each
// part, which is read, and later written as one more than was read, and a log
// of all accepted steps. Unless it is unfenced, the token is checked at each of
// them: for every part that the lease covers, a reader's by the rule for readers.
type resource struct {
	db     *sql.DB
	guard  *fence.SQL
	fenced bool
}

// writeLimit is how long a write may take. Others may be paused in the middle
// of theirs.
const writeLimit = 30 * time.Second

// openResource opens the resource in a file of SQLite. The program imports
// modernc.org/sqlite.
func openResource(file string, fenced bool) (*resource, error) {
	// A writer that is paused in its transaction blocks all others for as
	// long. Nothing is synced: the file is temporary.
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2)
	guard, err := fence.NewSQL(db, fence.SQLite, nil)
	if err != nil {
		db.Close()
		return nil, err
	}
	return &resource{db: db, guard: guard, fenced: fenced}, nil
}

// create creates the tables, with a counter of 0 for each part.
func (r *resource) create(ctx context.Context, parts []string) error {
	_, err := r.db.ExecContext(ctx, `CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
		CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, step TEXT, token INTEGER, client INTEGER, was INTEGER, is_now INTEGER)`)
	for _, part := range parts {
		if err == nil {
			_, err = r.db.ExecContext(ctx, "INSERT INTO counter VALUES (?, 0)", part)
		}
	}
	if err == nil {
		err = r.guard.Create(ctx)
	}
	return err
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
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	check := r.guard.CheckTx
	if step == Look {
		check = r.guard.CheckReadTx
	}
	for _, part := range c.parts {
		if !r.fenced {
			break
		}
		if err := check(ctx, tx, part, c.token); err != nil {
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
			if err := tx.QueryRow("SELECT value FROM counter WHERE name = ?", part).Scan(&is); err != nil {
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
		if _, err := tx.Exec("UPDATE counter SET value = ? WHERE name = ?", was+1, c.of); err != nil {
			return err
		}
		return r.log(tx, c, c.of, Write, was, was+1)
	})
}

func (r *resource) log(tx *sql.Tx, c caller, part string, step Step, was, is int64) error {
	_, err := tx.Exec("INSERT INTO log (name, step, token, client, was, is_now) VALUES (?, ?, ?, ?, ?, ?)",
		part, string(step), int64(c.token), c.client, was, is)
	return err
}

// rows returns all accepted steps in their order, and the counters.
func (r *resource) rows(ctx context.Context) (rows []Row, counters map[string]int64, err error) {
	err = r.each(ctx, "SELECT name, step, token, client, was, is_now FROM log ORDER BY id", func(list *sql.Rows) error {
		rows = append(rows, Row{})
		row := &rows[len(rows)-1]
		return list.Scan(&row.Name, &row.Step, &row.Token, &row.Client, &row.Was, &row.Is)
	})
	if err != nil {
		return nil, nil, err
	}
	counters = map[string]int64{}
	err = r.each(ctx, "SELECT name, value FROM counter", func(list *sql.Rows) error {
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
	list, err := r.db.QueryContext(ctx, query)
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
