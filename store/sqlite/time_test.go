package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

// testTime is a machine's time that a test controls.
type testTime struct {
	wall    time.Time
	elapsed time.Duration
	boot    string
}

func (m *testTime) timekeeper() timekeeper {
	return timekeeper{
		wall:    func() time.Time { return m.wall },
		elapsed: func() int64 { return int64(m.elapsed) },
		boot:    m.boot,
	}
}

func (m *testTime) pass(d time.Duration) {
	m.wall = m.wall.Add(d)
	m.elapsed += d
}

func (m *testTime) token() node.Token { return node.Token(m.wall.UnixMicro()) }

func newTestTime() *testTime {
	return &testTime{wall: time.Now().Truncate(time.Microsecond), elapsed: time.Hour, boot: "first boot"}
}

func withToken(req node.Request, token node.Token) node.Request {
	req.Token = token
	return req
}

func TestSettingTheWallClockMovesNoExpiry(t *testing.T) {
	for _, step := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		m := newTestTime()
		n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), m.timekeeper())
		do(t, n, request(node.OpAcquire, "name", "one"))

		m.wall = m.wall.Add(step)
		m.pass(59 * time.Second)
		r := do(t, n, request(node.OpAcquire, "name", "two"))
		if r.Status != node.Held || r.Left != time.Second {
			t.Errorf("a step of %v: %v for %v yet, want held for 1s yet", step, r.Status, r.Left)
		}
		if !r.Now.Equal(m.wall) {
			t.Errorf("a step of %v: Now is %v, want the wall clock, %v", step, r.Now, m.wall)
		}
		m.pass(time.Second)
		want(t, n, request(node.OpAcquire, "name", "two"), node.Granted)
	}
}

func TestARebootEndsLocksAndQueuesButNotFences(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	m := newTestTime()
	before := mustOpen(t, path, m.timekeeper())
	old := m.token()
	do(t, before, withToken(request(node.OpAcquire, "name", "one"), old))
	wait := request(node.OpAcquire, "name", "two")
	wait.Wait = true
	do(t, before, wait)
	mark := node.RecordsRequest{Op: node.OpComplete, Name: "name", Occurrence: "monday", Retention: time.Hour}
	if _, err := before.Records(t.Context(), mark); err != nil {
		t.Fatal(err)
	}

	// The new boot clock is behind the old one, so that every time in the file
	// is in the future.
	m.boot, m.elapsed = "second boot", time.Second
	after := mustOpen(t, path, m.timekeeper())
	if r := do(t, after, request(node.OpInspect, "name", "two")); r.Status != node.Absent || r.Rank != 0 {
		t.Errorf("inspect after a reboot: %v by %q, rank %d", r.Status, r.Value, r.Rank)
	}
	if l, err := after.Look(t.Context(), "name"); err != nil || l.Reply.Status != node.Absent || len(l.Completed) != 1 || l.Since.IsZero() {
		t.Errorf("a look after a reboot: %+v, %v", l, err)
	}
	for _, name := range []string{"name", "another name"} {
		r := do(t, after, withToken(request(node.OpAcquire, name, "three"), old))
		if r.Status != node.Stale || r.Fence != old {
			t.Errorf("%s, with the token from before the reboot: %v, fence %d", name, r.Status, r.Fence)
		}
		r = do(t, after, withToken(request(node.OpAcquire, name, "three"), old+1))
		if r.Status != node.Granted {
			t.Errorf("%s, with a higher token: %v", name, r.Status)
		}
	}
	// What was written after the reboot is of this boot.
	want(t, after, request(node.OpAcquire, "name", "four"), node.Held)
}

// TestAProcessOfAnEarlierBootGetsAnError has another machine open the file. It
// looks like a reboot, so what this one holds is over.
func TestAProcessOfAnEarlierBootGetsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	m := newTestTime()
	before := mustOpen(t, path, m.timekeeper())
	do(t, before, request(node.OpAcquire, "name", "one"))
	m.boot = "another machine"
	mustOpen(t, path, m.timekeeper())
	for _, op := range []node.Op{node.OpExtend, node.OpInspect} {
		if r, err := before.Do(t.Context(), request(op, "name", "one")); !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "booted at another time") {
			t.Errorf("%v: %v, %v", op, r.Status, err)
		}
	}
}

// TestAMarkIsNotSweptEarlyWhenTheClockIsSetBack has a mark that is remembered by
// the wall clock, which is behind the file's by then.
func TestAMarkIsNotSweptEarlyWhenTheClockIsSetBack(t *testing.T) {
	m := newTestTime()
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), m.timekeeper())
	if _, err := n.Records(t.Context(), node.RecordsRequest{Op: node.OpComplete, Name: "name", Occurrence: "monday", Retention: time.Hour}); err != nil {
		t.Fatal(err)
	}
	m.wall = m.wall.Add(-30 * time.Minute)
	for _, want := range []int{1, 0} {
		m.pass(70 * time.Minute)
		sweepAll(t, n)
		if rows := countRows(t, n); rows != want {
			t.Errorf("at %v by the wall clock: %d rows, want %d", m.wall, rows, want)
		}
	}
}

// TestTokensNeverGoBackWhateverTheClockDoes sweeps the row of a lock, and sets the clock
// back. A late release, and other rows that are swept, do not lower what is left of its
// fence. Nobody is locked out until the clock is correct again.
func TestTokensNeverGoBackWhateverTheClockDoes(t *testing.T) {
	m := newTestTime()
	n := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), m.timekeeper())
	old := m.token()
	for _, name := range []string{"name", "other name"} {
		do(t, n, withToken(request(node.OpAcquire, name, "one"), old))
		old--
		m.pass(2 * time.Hour)
		sweepAll(t, n)
		if rows := countRows(t, n); rows != 0 {
			t.Fatalf("%d rows are left of what is over", rows)
		}
	}
	old += 2
	m.wall = m.wall.Add(-24 * time.Hour)
	do(t, n, withToken(request(node.OpRelease, "name", "late"), old-10))
	for _, c := range []struct {
		who   string
		mode  node.Mode
		token node.Token
		want  node.Status
	}{
		{"writer", node.Exclusive, m.token(), node.Stale},
		{"writer", node.Exclusive, old, node.Stale},
		{"one", node.Shared, old, node.Stale},
		{"one", node.Shared, old + 5, node.Granted},
		{"two", node.Shared, old, node.Stale},
		{"two", node.Shared, old + 1, node.Granted},
	} {
		req := withToken(request(node.OpAcquire, "name", c.who), c.token)
		req.Mode = c.mode
		if r := do(t, n, req); r.Status != c.want || r.Status == node.Stale && r.Fence != old && c.who == "writer" {
			t.Errorf("%s with %d above the token from before: %v, fence %d; want %v", c.who, int64(c.token)-int64(old), r.Status, r.Fence, c.want)
		}
	}
}

func TestAFileOfTheBootClockNeedsTheBootClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	m := newTestTime()
	mustOpen(t, path, m.timekeeper())
	m.boot = ""
	n, err := open(path, m.timekeeper())
	if err == nil {
		n.Close()
		t.Fatal("a process without the boot clock opened the file")
	}
	if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "boot clock") {
		t.Errorf("the error does not say what is wrong: %v", err)
	}
}

func TestAFileOfTheWallClockIsReadByItEverywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	m := newTestTime()
	m.boot = ""
	a := mustOpen(t, path, m.timekeeper())
	m.boot = "some boot"
	b := mustOpen(t, path, m.timekeeper())
	do(t, a, request(node.OpAcquire, "name", "one"))
	if r := do(t, b, request(node.OpAcquire, "name", "two")); r.Status != node.Held || r.Left != time.Minute {
		t.Errorf("%v for %v yet, want held for 1m yet", r.Status, r.Left)
	}
}

// sweepAll deletes all rows that are over.
func sweepAll(t *testing.T, n *Node) {
	t.Helper()
	must(t, n.rows.Sweep(t.Context()))
}

func countRows(t *testing.T, n *Node) int {
	t.Helper()
	var rows int
	must(t, n.store.db.QueryRowContext(context.Background(), `SELECT count(*) FROM lock`).Scan(&rows))
	return rows
}
