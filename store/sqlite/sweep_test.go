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
	const names, alive = 3000, 30
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
	const most = alive + names/5 // sweeps come at random
	if rows := countRows(t, n); rows > most {
		t.Errorf("%d rows are in the file after %d names of which %d are alive", rows, names, alive)
	}
}

func TestALockWithoutATokenLeavesNothingBehind(t *testing.T) {
	m := newTestTime()
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), m.timekeeper())
	do(t, n, request(node.OpAcquire, "name", "one"))
	do(t, n, request(node.OpRelease, "name", "one"))
	do(t, n, request(node.OpRelease, "name", "one"))
	m.pass(time.Minute)
	sweepAll(t, n)
	if rows := countRows(t, n); rows != 0 {
		t.Errorf("%d rows are left", rows)
	}
}

// TestAForgottenFloorStaysInForce has a name that was swept. A reader's token must
// be above what was granted before, and a second reader's too.
func TestAForgottenFloorStaysInForce(t *testing.T) {
	m := newTestTime()
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), m.timekeeper())
	old := m.token()
	do(t, n, withToken(request(node.OpAcquire, "name", "writer"), old))
	m.pass(2 * time.Hour)
	sweepAll(t, n)
	m.wall = m.wall.Add(-2 * time.Hour)
	expect := func(want node.Status, who string, token node.Token) {
		t.Helper()
		reader := withToken(request(node.OpAcquire, "name", who), token)
		reader.Mode = node.Shared
		if r := do(t, n, reader); r.Status != want {
			t.Errorf("%s with %d above the writer's token: %v, want %v", who, int64(token)-int64(old), r.Status, want)
		}
	}
	expect(node.Stale, "one", old)
	expect(node.Granted, "one", old+5)
	expect(node.Stale, "two", old)
	expect(node.Granted, "two", old+1)
}
