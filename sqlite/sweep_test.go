package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

func TestNamesUsedOnceDoNotFillTheFile(t *testing.T) {
	m := newTestTime()
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), m.timekeeper())
	const names, alive = 1000, 30
	for i := range names {
		name := fmt.Sprint("name ", i)
		req := withToken(request(node.OpAcquire, name, "one"), m.token())
		req.Retention = alive * time.Second
		req.TTL = alive * time.Second
		if r := do(t, n, req); r.Status != node.Granted {
			t.Fatal(r.Status)
		}
		req.Value, req.Wait = "two", true
		do(t, n, req)
		m.pass(time.Second)
	}
	// With so few rows every sweep finds all dead ones, so this is what
	// collects while hundreds of requests in a row do not sweep.
	const most = alive + 6*sweepBatch
	for _, table := range []string{"lock", "waiter"} {
		if rows := countRows(t, n, table); rows > most {
			t.Errorf("%d rows are in %s after %d names of which %d are alive", rows, table, names, alive)
		}
	}
}

func TestALockWithoutATokenLeavesNothingBehind(t *testing.T) {
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), systemTime())
	do(t, n, request(node.OpAcquire, "name", "one"))
	do(t, n, request(node.OpRelease, "name", "one"))
	do(t, n, request(node.OpRelease, "name", "one"))
	if rows := countRows(t, n, "lock"); rows != 0 {
		t.Errorf("%d rows are left", rows)
	}
}
