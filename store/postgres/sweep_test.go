//go:build unix

package postgres_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// TestSweepPassesOverRowsThatAreInUse removes four rows of which one is locked, one
// has changed since, and one was never there.
func TestSweepPassesOverRowsThatAreInUse(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	n, err := postgres.Open(server.DSN(), &postgres.Options{Poll: true})
	must(t, err)
	defer n.Close()
	mustBe(t, n, node.Request{Op: node.OpMark, Mark: node.MarkFresh, Guard: &listed}, node.Granted)
	db := operatorOf(t, server)
	for _, name := range []string{"over", "locked", "changed", "live"} {
		req := wanted(node.OpAcquire, "one")
		req.Name = name
		mustBe(t, n, req, node.Granted)
	}
	tx, err := db.Begin()
	must(t, err)
	defer tx.Rollback()
	if _, err := tx.Exec(`SELECT FROM redlatch_lock WHERE name = 'locked' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	change := func() {
		if _, err := db.Exec(`UPDATE redlatch_lock SET version = 'other' WHERE name = 'changed'`); err != nil {
			t.Fatal(err)
		}
	}
	must(t, postgres.Remove(t.Context(), n, change, "over", "locked", "changed", "missing"))
	var left string
	must(t, db.QueryRow(`SELECT string_agg(convert_from(name, 'UTF8'), ' ' ORDER BY name) FROM redlatch_lock WHERE name <> ''`).Scan(&left))
	if left != "changed live locked" {
		t.Errorf("%q are left", left)
	}
}

// BenchmarkAcquireBesideAMillionRows measures acquires, among them those that
// sweep, in a table with a million rows, and counts what the updates leave dead.
//
//	go test -run - -bench MillionRows -benchtime 20000x ./store/postgres
func BenchmarkAcquireBesideAMillionRows(b *testing.B) {
	server := servertest.OwnPostgreSQL(b)
	n, err := postgres.Open(server.DSN(), &postgres.Options{Poll: true})
	must(b, err)
	defer n.Close()
	request := func(op node.Op, i int64) node.Request {
		return node.Request{Op: op, Name: fmt.Sprint("job ", i), Value: "v", TTL: time.Minute, Retention: time.Hour}
	}
	mustBe(b, n, request(node.OpAcquire, 0), node.Granted)
	db := operatorOf(b, server)
	for _, text := range []string{
		`INSERT INTO redlatch_lock SELECT convert_to('live ' || i, 'UTF8'), 'v', convert_to(repeat('x', 100), 'UTF8')
			FROM generate_series(1, 1000000) i`,
		`ANALYZE redlatch_lock`, `SELECT pg_stat_reset()`,
	} {
		if _, err := db.Exec(text); err != nil {
			b.Fatal(err)
		}
	}
	var mu sync.Mutex
	var all []time.Duration
	var next atomic.Int64
	b.ResetTimer()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				begin := time.Now()
				_, err := n.Do(b.Context(), request(node.OpAcquire, i))
				took := time.Since(begin)
				if err == nil {
					_, err = n.Do(b.Context(), request(node.OpRelease, i))
				}
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				all = append(all, took)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	slices.Sort(all)
	for _, p := range []float64{0.5, 0.99, 0.999} {
		b.ReportMetric(float64(all[int(float64(len(all)-1)*p)].Microseconds())/1000, fmt.Sprintf("p%v-ms", p*100))
	}
	var dead, hot float64
	must(b, db.QueryRow(`SELECT n_dead_tup, n_tup_hot_upd::float / greatest(n_tup_upd, 1) FROM pg_stat_user_tables WHERE relname = 'redlatch_lock'`).Scan(&dead, &hot))
	b.ReportMetric(dead, "dead-rows")
	b.ReportMetric(hot*100, "%HOT")
}
