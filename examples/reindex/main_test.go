//go:build unix

package main

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

// number returns the number at the end of a line.
func number(t *testing.T, line string) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return n
}

// Without the hand-over the document would wait for the whole index, which takes longer
// than any step of this test may.
func TestReindexHandsOverBetweenBatchesAndContinues(t *testing.T) {
	env, path := processes.File(t), filepath.Join(t.TempDir(), "index.db")
	first := processes.Start(t, "first", env, "-db", path)
	first.Line("from batch 0")
	add := processes.Start(t, "urgent", env, "-db", path, "-add", "news")
	add.Line("added news")
	add.Ends(0)
	last := number(t, first.Line("handing over after batch"))
	if from := number(t, first.Line("from batch")); from != last+1 {
		t.Errorf("it continues from batch %d after batch %d", from, last)
	}
	first.Signal(syscall.SIGTERM)
	first.Ends(0)
	check(t, path)
}

// check checks that every batch was done once, and that progress is what was done.
func check(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var count, highest, distinct, next, documents int
	err = db.QueryRow(`SELECT count(*), max(batch), count(DISTINCT batch),
		(SELECT next FROM progress), (SELECT count(*) FROM documents) FROM parts`).
		Scan(&count, &highest, &distinct, &next, &documents)
	if err != nil {
		t.Fatal(err)
	}
	if count != distinct || count != highest+1 || next != count || documents != 1 {
		t.Errorf("%d batches, %d of them different, the highest %d, next %d; %d documents", count, distinct, highest, next, documents)
	}
}
