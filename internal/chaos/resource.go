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
// name, which is read, and later written as one more than was read, and a log
// of all accepted writes. Unless it is unfenced, the token is checked at each
// read and each write.
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
	guard, err := fence.NewSQL(db, s.Dialect, fence.SQLOptions{Table: s.Table + "_fence"})
	if err != nil {
		db.Close()
		return nil, err
	}
	return &resource{Store: s, db: db, guard: guard, fenced: fenced}, nil
}

// create creates the tables again, with a counter of 0 for each name.
func (r *resource) create(ctx context.Context, names []string) error {
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
		"CREATE TABLE " + r.Table + "_log (id " + number + ", name VARCHAR(80) NOT NULL, token BIGINT NOT NULL, client BIGINT NOT NULL, was BIGINT NOT NULL, is_now BIGINT NOT NULL)",
	} {
		if _, err := r.db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("the resource cannot be set up: %w", err)
		}
	}
	for _, name := range names {
		if _, err := r.db.ExecContext(ctx, r.text("INSERT INTO %_counter (name, value) VALUES (?, 0)"), name); err != nil {
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

// do runs f in a transaction, which begins with the check of the token unless
// the resource is unfenced.
func (r *resource) do(name string, token redlatch.Token, f func(*sql.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	if r.fenced {
		return r.guard.Do(ctx, name, token, f)
	}
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// read claims the resource and returns its counter.
func (r *resource) read(name string, token redlatch.Token) (value int64, err error) {
	err = r.do(name, token, func(tx *sql.Tx) error {
		return tx.QueryRow(r.text("SELECT value FROM %_counter WHERE name = ?"), name).Scan(&value)
	})
	return value, err
}

// write sets the counter to one more than was read, and logs it.
func (r *resource) write(name string, token redlatch.Token, client int, was int64) error {
	return r.do(name, token, func(tx *sql.Tx) error {
		if _, err := tx.Exec(r.text("UPDATE %_counter SET value = ? WHERE name = ?"), was+1, name); err != nil {
			return err
		}
		_, err := tx.Exec(r.text("INSERT INTO %_log (name, token, client, was, is_now) VALUES (?, ?, ?, ?, ?)"), name, int64(token), client, was, was+1)
		return err
	})
}

// rows returns all accepted writes in their order, and the counters.
func (r *resource) rows(ctx context.Context) (rows []Row, counters map[string]int64, err error) {
	list, err := r.db.QueryContext(ctx, r.text("SELECT name, token, client, was, is_now FROM %_log ORDER BY id"))
	if err != nil {
		return nil, nil, err
	}
	defer list.Close()
	for list.Next() {
		var row Row
		if err := list.Scan(&row.Name, &row.Token, &row.Client, &row.Was, &row.Is); err != nil {
			return nil, nil, err
		}
		rows = append(rows, row)
	}
	if err := list.Err(); err != nil {
		return nil, nil, err
	}
	counters = map[string]int64{}
	values, err := r.db.QueryContext(ctx, r.text("SELECT name, value FROM %_counter"))
	if err != nil {
		return nil, nil, err
	}
	defer values.Close()
	for values.Next() {
		var name string
		var value int64
		if err := values.Scan(&name, &value); err != nil {
			return nil, nil, err
		}
		counters[name] = value
	}
	return rows, counters, values.Err()
}
