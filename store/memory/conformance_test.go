package memory_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/nodetest"
	"github.com/redlatch/redlatch/store/memory"
)

func TestConformance(t *testing.T) {
	now := time.Now()
	nodetest.Run(t, nodetest.Harness{
		Open: func(testing.TB) (a, b node.Node) {
			n := memory.New(&memory.Options{Clock: func() time.Time { return now }})
			return n, n
		},
		Wakes:   true,
		Advance: func(d time.Duration) { now = now.Add(d) },
	})
}
