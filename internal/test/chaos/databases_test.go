//go:build unix

package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestFaultsOfDatabasesDoWhatTheySay is about the faults that a database can
// have besides those of its connections, one after the other on one server.
func TestFaultsOfDatabasesDoWhatTheySay(t *testing.T) {
	families, err := Choose("kill,freeze,failover")
	check.Must(t, err)
	checks := map[string]func(*bench, *sql.DB, *strike){"kill": killed, "freeze": frozen, "failover": promoted}
	for _, kind := range []ServerKind{Postgres, MariaDB, MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, Family{}, kind)
			db, err := sql.Open(driverOf(kind), b.n.current().(*servertest.Database).DSN(b.n.links[0].Addr()))
			check.Must(t, err)
			defer db.Close()
			b.execute(db, "CREATE TABLE written (n BIGINT NOT NULL)")
			b.execute(db, "INSERT INTO written VALUES (1)")
			for _, family := range families {
				s := family.draw(b.w, rand.New(rand.NewPCG(1, 1)))
				if s == nil {
					t.Fatalf("%s finds nothing to strike", family.Name)
				}
				checks[family.Name](b, db, s)
				b.n.struck = false
			}
		})
	}
}

// driverOf returns the name of a kind's driver for package database/sql.
func driverOf(kind ServerKind) string {
	return map[ServerKind]string{Postgres: "pgx", MariaDB: "mysql", MySQL: "mysql"}[kind]
}

// execute executes a statement by the client's way.
func (b *bench) execute(db *sql.DB, statement string) {
	b.Helper()
	var err error
	for range 10 { // a connection may be of the server before
		if _, err = db.Exec(statement); err == nil {
			return
		}
	}
	b.Fatalf("%s: %v", statement, err)
}

// last returns the highest number that is written there.
func (b *bench) last(db *sql.DB) (n int64) {
	b.Helper()
	var err error
	for range 10 {
		if err = db.QueryRow("SELECT max(n) FROM written").Scan(&n); err == nil {
			return n
		}
	}
	b.Fatal(err)
	return 0
}

// does applies a fault, or heals it.
func (b *bench) does(f func(*Fault) error) {
	b.Helper()
	check.Must(b, f(&Fault{}))
}

func killed(b *bench, db *sql.DB, s *strike) {
	b.does(s.apply)
	if conn, err := net.Dial("tcp", b.n.current().Addr()); err == nil {
		conn.Close()
		b.Error("the server still listens")
	}
	b.does(s.heal)
	if n := b.last(db); n != 1 {
		b.Errorf("it has %d, not 1", n)
	}
}

func frozen(b *bench, db *sql.DB, s *strike) {
	b.does(s.apply)
	ctx, cancel := context.WithTimeout(b.Context(), awhile)
	defer cancel()
	if _, err := db.ExecContext(ctx, "INSERT INTO written VALUES (2)"); !errors.Is(err, context.DeadlineExceeded) && !timesOut(err) {
		b.Errorf("it is not frozen: %v", err)
	}
	b.does(s.heal)
	b.execute(db, "INSERT INTO written VALUES (3)")
}

func promoted(b *bench, db *sql.DB, s *strike) {
	var acknowledged atomic.Int64
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := int64(4); ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			// The connection to the old server ends with that.
			if _, err := db.Exec(fmt.Sprint("INSERT INTO written VALUES (", n, ")")); err != nil {
				return
			}
			acknowledged.Store(n)
			time.Sleep(time.Millisecond) // so that the replica can follow
		}
	}()
	b.does(s.apply)
	close(stop)
	<-done
	fresh, err := sql.Open(driverOf(b.n.kind), b.n.current().(*servertest.Database).DSN(b.n.links[0].Addr()))
	check.Must(b, err)
	defer fresh.Close()
	var missing int64
	for n := int64(4); n <= acknowledged.Load(); n++ {
		var found int
		check.Must(b, fresh.QueryRow(fmt.Sprint("SELECT count(*) FROM written WHERE n = ", n)).Scan(&found))
		if found == 0 {
			missing++
		}
	}
	if written := acknowledged.Load() - 3; missing == 0 || missing == written {
		b.Errorf("of %d writes %d are missing", written, missing)
	}
}
