//go:build unix

package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/node"
)

// bench is a guard and a table that it protects: one row, which names its writer.
type bench struct {
	database
	db    *sql.DB
	guard *fence.SQL
	row   string
}

func newBench(t *testing.T, d database) *bench {
	t.Helper()
	b := &bench{database: d, db: d.open(t), row: newTable()}
	b.guard = newSQL(t, d, b.db)
	mustExec(t, b.db, "CREATE TABLE "+b.row+" (id INT PRIMARY KEY, writer INT, token BIGINT)")
	mustExec(t, b.db, "INSERT INTO "+b.row+" VALUES (1, 0, NULL)")
	return b
}

// write is what a holder does in its transaction.
func (b *bench) write(tx *sql.Tx, token node.Token) error {
	_, err := tx.Exec(fmt.Sprintf("UPDATE %s SET writer = %d WHERE id = 1", b.row, token))
	return err
}

func (b *bench) writer(t testing.TB) (token node.Token) {
	t.Helper()
	must(t, b.db.QueryRow("SELECT writer FROM "+b.row).Scan(&token))
	return token
}

func (b *bench) begin(t testing.TB, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := b.db.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
	must(t, err)
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

// awaitWaiter returns when a transaction waits for a lock, and reports whether
// it does; false if done was closed instead.
func (b *bench) awaitWaiter(t testing.TB, done <-chan struct{}) bool {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		var n int
		must(t, b.db.QueryRow(b.waiting).Scan(&n))
		if n > 0 {
			return true
		}
		select {
		case <-done:
			return false
		case <-time.After(5 * time.Millisecond): // the server cannot report it
		}
	}
	t.Fatal("nobody waits and nobody is done")
	return false
}

// serialization reports whether a database refused a transaction because of a
// concurrent one.
func serialization(err error) bool {
	var pg *pgconn.PgError
	var my *mysql.MySQLError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01") ||
		errors.As(err, &my) && (my.Number == 1213 || my.Number == 1020)
}

var levels = []sql.IsolationLevel{sql.LevelDefault, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

// eachLevel runs a test on both servers at every level, with a guard row that
// exists and with one that does not exist yet.
func eachLevel(t *testing.T, test func(t *testing.T, b *bench, level sql.IsolationLevel)) {
	for _, d := range []database{mariaDB, postgresDB} {
		for _, level := range levels {
			for _, known := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, %v, row %t", d.name, level, known), func(t *testing.T) {
					b := newBench(t, d)
					if known {
						must(t, b.guard.Check(context.Background(), "r", 1))
					}
					test(t, b, level)
				})
			}
		}
	}
}

// TestAPausedTransactionCannotOverwrite stops a transaction after its check, and another has to
// wait for it. What the first one wrote is seen by the second.
func TestAPausedTransactionCannotOverwrite(t *testing.T) {
	ctx := context.Background()
	type who struct {
		reads bool
		token node.Token
	}
	for name, c := range map[string]struct {
		first, second who
		stale         bool
	}{
		"a writer after a later writer":  {who{false, 6}, who{false, 5}, true},
		"a writer after an older writer": {who{false, 5}, who{false, 6}, false},
		"a writer after a later reader":  {who{true, 6}, who{false, 5}, true},
		"a reader after a later writer":  {who{false, 6}, who{true, 5}, true},
		"a reader after a later reader":  {who{true, 6}, who{true, 5}, false},
		"a writer after an older reader": {who{true, 5}, who{false, 6}, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachLevel(t, func(t *testing.T, b *bench, level sql.IsolationLevel) {
				check := func(tx *sql.Tx, w who) error {
					if w.reads {
						return b.guard.CheckReadTx(ctx, tx, "r", w.token)
					}
					return b.guard.CheckTx(ctx, tx, "r", w.token)
				}
				first, second := b.begin(t, level), b.begin(t, level)
				must(t, check(first, c.first))
				var verdict error
				done := make(chan struct{})
				go func() {
					defer close(done)
					verdict = check(second, c.second)
				}()
				if !b.awaitWaiter(t, done) {
					t.Fatalf("the second check did not wait for the first, but returned %v", verdict)
				}
				must(t, errors.Join(b.write(first, c.first.token), first.Commit()))
				<-done
				if serialization(verdict) && level >= sql.LevelRepeatableRead {
					return // the database's own way to say no: it starts anew, and then sees it
				}
				if c.stale {
					wantStale(t, verdict, c.second.token, c.first.token)
					return
				}
				var writer node.Token
				if err := second.QueryRow("SELECT writer FROM " + b.row).Scan(&writer); verdict != nil || err != nil || writer != c.first.token {
					t.Errorf("%v; after the check the row shows writer %d, %v", verdict, writer, err)
				}
			})
		})
	}
}

// TestOldSnapshotsDoNotHideANewerToken has the check, of a guard row or of a token
// column, come late in a transaction whose snapshot is old.
func TestOldSnapshotsDoNotHideANewerToken(t *testing.T) {
	ctx := context.Background()
	eachLevel(t, func(t *testing.T, b *bench, level sql.IsolationLevel) {
		if level == sql.LevelSerializable && b.dialect == fence.MySQL {
			return // its reads lock: the newer holder would wait for this one
		}
		column, err := fence.NewColumn(b.dialect, b.row, "id", "token")
		must(t, err)
		row, late := b.begin(t, level), b.begin(t, level)
		for _, older := range []*sql.Tx{row, late} {
			var writer int
			must(t, older.QueryRow("SELECT writer FROM "+b.row).Scan(&writer))
		}
		must(t, b.guard.Do(ctx, "r", 6, func(tx *sql.Tx) error { return column.Update(ctx, tx, 1, 6, "writer = 6") }))
		for _, err := range []error{b.guard.CheckTx(ctx, row, "r", 5), column.Update(ctx, late, 1, 5, "writer = 5")} {
			if !serialization(err) || level < sql.LevelRepeatableRead {
				wantStale(t, err, 5, 6)
			}
		}
		if writer := b.writer(t); writer != 6 {
			t.Errorf("the row was last written by %d", writer)
		}
	})
}

func TestDoWritesAllOrNothing(t *testing.T) {
	ctx := context.Background()
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			b := newBench(t, d)
			must(t, b.guard.Do(ctx, "r", 6, func(tx *sql.Tx) error { return b.write(tx, 6) }))
			called := false
			wantStale(t, b.guard.Do(ctx, "r", 5, func(*sql.Tx) error { called = true; return nil }), 5, 6)
			for _, token := range []node.Token{0, node.MaxToken + 1} {
				if err := b.guard.Do(ctx, "r", token, func(*sql.Tx) error { called = true; return nil }); !errors.Is(err, node.ErrConfig) {
					t.Errorf("token %d: %v", token, err)
				}
			}
			if called {
				t.Error("the function ran with a token that was refused")
			}
			boom := errors.New("boom")
			if err := b.guard.Do(ctx, "r", 7, func(tx *sql.Tx) error {
				if err := b.write(tx, 7); err != nil {
					return err
				}
				return boom
			}); !errors.Is(err, boom) {
				t.Errorf("got %v", err)
			}
			func() {
				defer func() { recover() }()
				b.guard.Do(ctx, "r", 8, func(tx *sql.Tx) error {
					b.write(tx, 8)
					panic(boom)
				})
			}()
			if highest, err := b.guard.Highest(ctx, "r"); err != nil || highest != 6 || b.writer(t) != 6 {
				t.Errorf("after a failure and a panic: highest %d, row by %d, %v", highest, b.writer(t), err)
			}
		})
	}
}
