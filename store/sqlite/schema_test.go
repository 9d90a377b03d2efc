package sqlite

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/node"
)

// TestAFileThatANewerReleaseChangedIsExplained has the file open while a newer release
// changes it.
func TestAFileThatANewerReleaseChangedIsExplained(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	n := mustOpen(t, path, systemTime())
	do(t, n, request(node.OpAcquire, "name", "one"))
	alter(t, path, `ALTER TABLE lock RENAME COLUMN state TO states`)
	if _, err := n.Do(context.Background(), request(node.OpExtend, "name", "one")); err == nil || !strings.Contains(err.Error(), "a newer release") {
		t.Errorf("the answer is %v", err)
	}
}

// TestRebootPassesOverADamagedRow damages the row of a lock that is held. What it does
// to a node is tested in package casnode.
func TestRebootPassesOverADamagedRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	m := newTestTime()
	n := mustOpen(t, path, m.timekeeper())
	do(t, n, withToken(request(node.OpAcquire, "name", "one"), m.token()))
	pragma(t, n, `UPDATE lock SET state = x'6301'`)
	m.boot = "second boot"
	n = mustOpen(t, path, m.timekeeper())
	for name, want := range map[string]node.Status{"name": node.Foreign, "other": node.Granted} {
		if r := do(t, n, withToken(request(node.OpAcquire, name, "two"), m.token()+1)); r.Status != want {
			t.Errorf("%q: %v, want %v", name, r.Status, want)
		}
	}
}
