//go:build unix

package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/node"
)

// bench is a guard and a table that it protects: one row, and a log of its
// writers.
type bench struct {
	database
	db    *sql.DB
	guard *fence.SQL
	row   string
	log   string
}

func newBench(t *testing.T, d database) *bench {
	t.Helper()
	b := &bench{database: d, db: d.open(t), row: newTable(), log: newTable()}
	b.guard = newSQL(t, d, b.db)
	mustExec(t, b.db, "CREATE TABLE "+b.row+" (id INT PRIMARY KEY, writer INT)")
	mustExec(t, b.db, "INSERT INTO "+b.row+" VALUES (1, 0)")
	serial := map[fence.Dialect]string{
		fence.SQLite: "INTEGER PRIMARY KEY AUTOINCREMENT", fence.MySQL: "INT AUTO_INCREMENT PRIMARY KEY", fence.PostgreSQL: "serial PRIMARY KEY",
	}[d.dialect]
	mustExec(t, b.db, "CREATE TABLE "+b.log+" (id "+serial+", token BIGINT)")
	return b
}

// write is what a holder does in its transaction.
func (b *bench) write(tx *sql.Tx, token node.Token) error {
	if _, err := tx.Exec(fmt.Sprintf("UPDATE %s SET writer = %d WHERE id = 1", b.row, token)); err != nil {
		return err
	}
	_, err := tx.Exec(fmt.Sprintf("INSERT INTO %s (token) VALUES (%d)", b.log, token))
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

func TestStaleTransactionThatHadToWaitIsRefused(t *testing.T) {
	ctx := context.Background()
	eachLevel(t, func(t *testing.T, b *bench, level sql.IsolationLevel) {
		newer, older := b.begin(t, level), b.begin(t, level)
		must(t, b.guard.CheckTx(ctx, newer, "r", 6))
		var verdict error
		done := make(chan struct{})
		go func() {
			defer close(done)
			verdict = b.guard.CheckTx(ctx, older, "r", 5)
		}()
		if !b.awaitWaiter(t, done) {
			t.Fatalf("the second check did not wait for the first, but returned %v", verdict)
		}
		must(t, errors.Join(b.write(newer, 6), newer.Commit()))
		<-done
		if serialization(verdict) && level >= sql.LevelRepeatableRead {
			return // the database's own way to say no
		}
		wantStale(t, verdict, 5, 6)
	})
}

func TestNewerTransactionSeesWhatTheOlderWrote(t *testing.T) {
	ctx := context.Background()
	eachLevel(t, func(t *testing.T, b *bench, level sql.IsolationLevel) {
		older, newer := b.begin(t, level), b.begin(t, level)
		must(t, b.guard.CheckTx(ctx, older, "r", 5))
		var verdict error
		done := make(chan struct{})
		go func() {
			defer close(done)
			verdict = b.guard.CheckTx(ctx, newer, "r", 6)
		}()
		if !b.awaitWaiter(t, done) {
			t.Fatalf("the second check did not wait for the first, but returned %v", verdict)
		}
		must(t, errors.Join(b.write(older, 5), older.Commit()))
		<-done
		if serialization(verdict) && level >= sql.LevelRepeatableRead {
			return // it starts anew, and then sees it
		}
		if verdict != nil {
			t.Fatal(verdict)
		}
		var writer int
		if err := newer.QueryRow("SELECT writer FROM " + b.row).Scan(&writer); err != nil || writer != 5 {
			t.Errorf("after the check the row shows writer %d, %v", writer, err)
		}
	})
}

// TestOldSnapshotsDoNotHideANewerToken has the check come late in a transaction
// whose snapshot is old.
func TestOldSnapshotsDoNotHideANewerToken(t *testing.T) {
	ctx := context.Background()
	eachLevel(t, func(t *testing.T, b *bench, level sql.IsolationLevel) {
		if level == sql.LevelSerializable && b.dialect == fence.MySQL {
			return // its reads lock: the newer holder would wait for this one
		}
		older := b.begin(t, level)
		var writer int
		must(t, older.QueryRow("SELECT writer FROM "+b.row).Scan(&writer))
		must(t, b.guard.Do(ctx, "r", 6, func(tx *sql.Tx) error { return b.write(tx, 6) }))
		err := b.guard.CheckTx(ctx, older, "r", 5)
		if serialization(err) && level >= sql.LevelRepeatableRead {
			return
		}
		wantStale(t, err, 5, 6)
	})
}

// TestAPausedTransactionCannotOverwrite stops a holder between its check and
// its write. A hand-written check that takes no lock shows what happens
// otherwise.
func TestAPausedTransactionCannotOverwrite(t *testing.T) {
	ctx := context.Background()
	for _, d := range []database{mariaDB, postgresDB} {
		run := func(t *testing.T, check func(b *bench, tx *sql.Tx) error) node.Token {
			b := newBench(t, d)
			must(t, b.guard.Check(ctx, "r", 5))
			older := b.begin(t, sql.LevelReadCommitted)
			must(t, check(b, older))
			var verdict error
			done := make(chan struct{})
			go func() {
				defer close(done)
				verdict = b.guard.Do(ctx, "r", 6, func(tx *sql.Tx) error { return b.write(tx, 6) })
			}()
			b.awaitWaiter(t, done)
			must(t, errors.Join(b.write(older, 5), older.Commit()))
			<-done
			if verdict != nil {
				t.Fatal(verdict)
			}
			return b.writer(t)
		}
		t.Run(d.name, func(t *testing.T) {
			if got := run(t, func(b *bench, tx *sql.Tx) error { return b.guard.CheckTx(ctx, tx, "r", 5) }); got != 6 {
				t.Errorf("the row was last written by %d", got)
			}
		})
		t.Run(d.name+", with a check that takes no lock", func(t *testing.T) {
			if got := run(t, func(b *bench, tx *sql.Tx) error {
				highest, err := b.guard.Highest(ctx, "r")
				if err == nil && highest > 5 {
					err = fence.ErrStale
				}
				return err
			}); got != 5 {
				t.Errorf("the row was last written by %d: this test cannot fail", got)
			}
		})
	}
}

// TestWritesFollowTheOrderOfTokens checks the order of the writes.
func TestWritesFollowTheOrderOfTokens(t *testing.T) {
	const workers, each = 6, 15
	ctx := context.Background()
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			b := newBench(t, d)
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for i := range each {
						token := node.Token(1 + i*10 + rand.IntN(20))
						err := b.guard.Do(ctx, "r", token, func(tx *sql.Tx) error { return b.write(tx, token) })
						if err != nil && !errors.Is(err, fence.ErrStale) && !serialization(err) {
							t.Errorf("token %d: %v", token, err)
						}
					}
				})
			}
			wg.Wait()
			rows, err := b.db.Query("SELECT token FROM " + b.log + " ORDER BY id")
			must(t, err)
			defer rows.Close()
			var last node.Token
			n := 0
			for ; rows.Next(); n++ {
				var token node.Token
				must(t, rows.Scan(&token))
				if token < last {
					t.Fatalf("%d wrote after %d", token, last)
				}
				last = token
			}
			if n < each/2 || n == workers*each {
				t.Errorf("%d writes of %d: this run shows nothing", n, workers*each)
			}
			if highest, err := b.guard.Highest(ctx, "r"); err != nil || highest != last || b.writer(t) != last {
				t.Errorf("highest %d, row by %d, last write by %d, %v", highest, b.writer(t), last, err)
			}
		})
	}
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

func TestDeadlocksAreNotTakenForStaleTokens(t *testing.T) {
	ctx := context.Background()
	for _, d := range []database{mariaDB, postgresDB} {
		t.Run(d.name, func(t *testing.T) {
			b := newBench(t, d)
			for _, r := range []string{"a", "b"} {
				must(t, b.guard.Check(ctx, r, 1))
			}
			one, two := b.begin(t, sql.LevelDefault), b.begin(t, sql.LevelDefault)
			must(t, errors.Join(b.guard.CheckTx(ctx, one, "a", 2), b.guard.CheckTx(ctx, two, "b", 2)))
			first := make(chan error, 1)
			go func() {
				err := b.guard.CheckTx(ctx, one, "b", 3)
				one.Rollback()
				first <- err
			}()
			b.awaitWaiter(t, nil)
			err2 := b.guard.CheckTx(ctx, two, "a", 3)
			two.Rollback()
			err1 := <-first
			failed := 0
			for _, err := range []error{err1, err2} {
				if err != nil {
					failed++
					if errors.Is(err, fence.ErrStale) || !serialization(err) {
						t.Errorf("got %v, want the database's own error", err)
					}
				}
			}
			if failed != 1 {
				t.Errorf("got %v and %v, want one of them to fail", err1, err2)
			}
		})
	}
}
