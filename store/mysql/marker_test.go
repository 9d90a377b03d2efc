//go:build unix

package mysql_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// TestMarkerDoesNotChangeWhileAWriteWaits has a write wait for its row, after the
// marker was compared. A new marker must wait for it: otherwise the write would be
// of a time before the marker, and committed after it.
func TestMarkerDoesNotChangeWhileAWriteWaits(t *testing.T) { onBoth(t, markerWaits) }

func markerWaits(t *testing.T, p product) {
	server := p.own(t)
	db := operator(t, server.DSN())
	for _, level := range []string{"READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"} {
		for _, exists := range []bool{false, true} {
			exec(t, server.DSN(), "DROP TABLE IF EXISTS redlatch_lock")
			n, _ := over(t, server.DSN()+"?"+p.isolation+"=%27"+level+"%27", 2)
			req := acquire("one")
			req.Op = node.OpRelease // it makes a row
			if !exists {
				req.Name = "other"
			}
			_, err := n.Do(t.Context(), req)
			must(t, err)
			keep := "INSERT INTO redlatch_lock SELECT 'job', 'v', state FROM redlatch_lock WHERE name = 'other'"
			if exists {
				keep = "SELECT 1 FROM redlatch_lock WHERE name = 'job' FOR UPDATE"
			}
			tx := begin(t, db, keep)
			written, marked := make(chan error, 1), make(chan error, 1)
			go func() {
				_, err := n.Do(t.Context(), acquire("two"))
				written <- err
			}()
			waiting := func(want int) bool {
				for end := time.Now().Add(time.Minute); time.Now().Before(end) && len(marked) == 0; time.Sleep(150 * time.Millisecond) {
					var n int
					must(t, db.QueryRow("SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'").Scan(&n))
					if n == want {
						return true
					}
				}
				return false
			}
			if !waiting(1) {
				t.Fatalf("%s, the row exists %v: the write does not wait (%d have ended)", level, exists, len(written))
			}
			go func() {
				_, err := db.Exec("UPDATE redlatch_lock SET version = 'another' WHERE name = ''")
				marked <- err
			}()
			if !waiting(2) {
				t.Errorf("%s, the row exists %v: the marker was changed while a write waited", level, exists)
			}
			tx.Rollback()
			for _, c := range []chan error{written, marked} {
				must(t, <-c)
			}
		}
	}
}
