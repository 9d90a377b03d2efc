package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
)

// TestWriteNeedsWhatWasRead has a write come late: when another process has changed
// the row, when the row was written and removed since, and after a reboot.
func TestWriteNeedsWhatWasRead(t *testing.T) {
	for name, meanwhile := range map[string]func(t *testing.T, path string, m *testTime, n *Node){
		"another row": func(t *testing.T, _ string, m *testTime, n *Node) {
			do(t, n, withToken(request(node.OpAcquire, "name", "one"), m.token()))
		},
		"a row that was removed": func(t *testing.T, _ string, m *testTime, n *Node) {
			do(t, n, withToken(request(node.OpAcquire, "name", "one"), m.token()))
			m.pass(2 * time.Hour)
			sweepAll(t, n)
			if rows := countRows(t, n); rows != 0 {
				t.Fatalf("%d rows are left", rows)
			}
		},
		"another boot": func(t *testing.T, path string, m *testTime, _ *Node) {
			m.boot = "second boot"
			mustOpen(t, path, m.timekeeper())
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "locks.db")
			m := newTestTime()
			n := mustOpen(t, path, m.timekeeper())
			seen, err := n.store.Read(t.Context(), "name")
			must(t, err)
			meanwhile(t, path, m, n)
			write := casnode.Write{Row: casnode.Row{Name: "name", Version: "late", State: []byte("late")}}
			done, _, err := n.store.Swap(t.Context(), seen, write)
			if done || err != nil {
				t.Errorf("a late write: %v, %v; want it refused", done, err)
			}
		})
	}
}
