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

// TestADamagedRowKeepsItsNameAndNoOther damages the row of a lock that is held. A
// reboot, a sweep and other names do not depend on it, and a break replaces it.
func TestADamagedRowKeepsItsNameAndNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	m := newTestTime()
	n := mustOpen(t, path, m.timekeeper())
	do(t, n, withToken(request(node.OpAcquire, "name", "one"), m.token()))
	pragma(t, n, `UPDATE lock SET state = x'6301'`)
	sweepAll(t, n)
	m.boot = "second boot"
	n = mustOpen(t, path, m.timekeeper())
	if r := do(t, n, withToken(request(node.OpAcquire, "name", "two"), m.token()+1)); r.Status != node.Foreign {
		t.Errorf("its name: %v", r.Status)
	}
	if r := do(t, n, withToken(request(node.OpAcquire, "other", "two"), m.token()+1)); r.Status != node.Granted {
		t.Errorf("another name: %v", r.Status)
	}
	mend := withToken(request(node.OpBreak, "name", ""), m.token()+2)
	mend.Foreign = true
	if r := do(t, n, mend); r.Status != node.Granted {
		t.Fatalf("a break: %v", r.Status)
	}
	if r := do(t, n, withToken(request(node.OpAcquire, "name", "two"), m.token()+3)); r.Status != node.Held {
		t.Errorf("after the break: %v", r.Status)
	}
	m.pass(mend.Retention)
	if r := do(t, n, withToken(request(node.OpAcquire, "name", "two"), m.token()+4)); r.Status != node.Granted {
		t.Errorf("after a while: %v", r.Status)
	}
}
