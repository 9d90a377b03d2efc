//go:build unix

package main

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

// newLog has the program make a log, and opens it.
func newLog(t *testing.T) (*sql.DB, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.db")
	processes.Start(t, "maker", processes.File(t), "-db", path, "-create").Ends(0)
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	check.Must(t, err)
	t.Cleanup(func() { db.Close() })
	return db, path
}

// TestEveryMessageIsHandledOnceThoughAConsumerDies has one consumer take all
// partitions, kills it among the messages, and has another take over. Messages
// that come later go to it too.
func TestEveryMessageIsHandledOnceThoughAConsumerDies(t *testing.T) {
	const partitions, perPartition = 4, 50
	db, path := newLog(t)
	count := func(query string) (n int) {
		t.Helper()
		check.Must(t, db.QueryRow(query).Scan(&n))
		return n
	}
	results := func(n int) {
		t.Helper()
		for begin := time.Now(); count("SELECT count(*) FROM results") < n; time.Sleep(5 * time.Millisecond) {
			if time.Since(begin) > time.Minute {
				t.Fatalf("%d of %d messages are handled after a minute", count("SELECT count(*) FROM results"), n)
			}
		}
	}

	env := processes.File(t)
	a := processes.Start(t, "A", env, "-db", path, "-ttl", "1s")
	results(partitions * perPartition / 10)
	b := processes.Start(t, "B", env, "-db", path, "-ttl", "1s")
	a.Kill()
	for range partitions {
		b.Line("is ours from message")
	}
	if _, err := db.Exec("INSERT INTO messages SELECT id, 50, 'one more' FROM partitions"); err != nil {
		t.Fatal(err)
	}
	results(partitions * (perPartition + 1))

	if n := count("SELECT count(*) FROM (SELECT DISTINCT part, id FROM results)"); n != partitions*(perPartition+1) {
		t.Errorf("%d messages of %d are handled", n, partitions*(perPartition+1))
	}
	if n := count("SELECT count(*) FROM results"); n != partitions*(perPartition+1) {
		t.Errorf("%d results of %d messages: some are handled twice", n, partitions*(perPartition+1))
	}
	if n := count("SELECT count(*) FROM (SELECT id - lag(id) OVER (PARTITION BY part ORDER BY rowid) AS step FROM results) WHERE step <> 1"); n != 0 {
		t.Errorf("%d messages are out of order", n)
	}
	if n := count("SELECT count(DISTINCT consumer) FROM results"); n != 2 {
		t.Errorf("%d consumers handled messages, want both", n)
	}
}

// TestNoPartitionHasTwoConsumers runs two at the same time, each of which
// could take all.
func TestNoPartitionHasTwoConsumers(t *testing.T) {
	db, path := newLog(t)
	env := processes.File(t)
	a := processes.Start(t, "A", env, "-db", path, "-most", "2")
	a.Line("is ours from message")
	a.Line("is ours from message")
	b := processes.Start(t, "B", env, "-db", path, "-most", "4")
	b.Line("is ours from message")
	b.Line("is ours from message")
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var n, shared int
		check.Must(t, db.QueryRow("SELECT count(*) FROM results").Scan(&n))
		if n < 200 {
			if time.Since(begin) > time.Minute {
				t.Fatalf("%d of 200 messages are handled after a minute", n)
			}
			continue
		}
		check.Must(t, db.QueryRow("SELECT count(*) FROM (SELECT part FROM results GROUP BY part HAVING count(DISTINCT consumer) <> 1)").Scan(&shared))
		if n != 200 || shared != 0 {
			t.Errorf("%d results of 200 messages, %d partitions with two consumers", n, shared)
		}
		return
	}
}
