package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/nodetest"
)

// TestConformance is on a machine whose time the test controls.
func TestConformance(t *testing.T) {
	m := newTestTime()
	nodetest.Run(t, nodetest.Harness{
		Open: func(t testing.TB) (a, b node.Node) {
			path := filepath.Join(t.TempDir(), "locks.db")
			return mustOpen(t, path, m.timekeeper()), mustOpen(t, path, m.timekeeper())
		},
		KeepsFences: true,
		Advance:     m.pass,
	})
}

func mustOpen(t testing.TB, path string, k timekeeper) *Node {
	t.Helper()
	n, err := open(path, k)
	must(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}
