//go:build unix

package chaos

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestDatabaseFailsOverToAReplicaWithoutTheLastWrites is about the fault that is
// another one on each kind of database.
func TestDatabaseFailsOverToAReplicaWithoutTheLastWrites(t *testing.T) {
	families, err := Choose("failover")
	check.Must(t, err)
	for _, kind := range []ServerKind{Postgres, MariaDB, MySQL} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, Family{}, kind)
			db, err := sql.Open(driverOf(kind), b.n.current().(*servertest.Database).DSN(b.n.links[0].Addr()))
			check.Must(t, err)
			defer db.Close()
			_, err = db.Exec("CREATE TABLE written (n BIGINT NOT NULL)")
			check.Must(t, err)
			promoted(b, db, families[0].draw(b.w, rand.New(rand.NewPCG(1, 1))))
		})
	}
}

// driverOf returns the name of a kind's driver for package database/sql.
func driverOf(kind ServerKind) string {
	return map[ServerKind]string{Postgres: "pgx", MariaDB: "mysql", MySQL: "mysql"}[kind]
}

// does applies a fault, or heals it.
func (b *bench) does(f func(*Fault) error) {
	b.Helper()
	check.Must(b, f(&Fault{}))
}

func promoted(b *bench, db *sql.DB, s *strike) {
	var acknowledged atomic.Int64
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := int64(1); ; n++ {
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
	for n := int64(1); n <= acknowledged.Load(); n++ {
		var found int
		check.Must(b, fresh.QueryRow(fmt.Sprint("SELECT count(*) FROM written WHERE n = ", n)).Scan(&found))
		if found == 0 {
			missing++
		}
	}
	if written := acknowledged.Load(); missing == 0 || missing == written {
		b.Errorf("of %d writes %d are missing", written, missing)
	}
}
