package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/nodetest"
)

func TestConformance(t *testing.T) {
	nodetest.Run(t, nodetest.Harness{
		Open: func(t testing.TB) (a, b node.Node) {
			path := filepath.Join(t.TempDir(), "locks.db")
			return mustOpen(t, path, systemTime()), mustOpen(t, path, systemTime())
		},
		KeepsFences: true,
	})
}

func TestConformanceByTheWallClock(t *testing.T) {
	now := time.Now().Truncate(time.Microsecond)
	k := timekeeper{wall: func() time.Time { return now }}
	nodetest.Run(t, nodetest.Harness{
		Open: func(t testing.TB) (a, b node.Node) {
			path := filepath.Join(t.TempDir(), "locks.db")
			return mustOpen(t, path, k), mustOpen(t, path, k)
		},
		KeepsFences: true,
		Advance:     func(d time.Duration) { now = now.Add(d) },
	})
}

func mustOpen(t testing.TB, path string, k timekeeper) *Node {
	t.Helper()
	n, err := open(path, k)
	must(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}
