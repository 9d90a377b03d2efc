package sqlite

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/redlatch/redlatch/node"
)

func BenchmarkAcquireRelease(b *testing.B) {
	n := mustOpen(b, filepath.Join(b.TempDir(), "locks.db"), systemTime())
	ctx := context.Background()
	req := node.Request{
		Name: "bench", Value: "0123456789abcdef0123456789abcdef host/1/bench",
		TTL: time.Minute, Window: time.Minute, Retention: time.Hour,
	}
	b.ReportAllocs()
	for b.Loop() {
		req.Token = max(req.Token+1, node.Token(time.Now().UnixMicro()))
		for _, op := range []node.Op{node.OpAcquire, node.OpRelease} {
			req.Op = op
			if r, err := n.Do(ctx, req); err != nil || r.Status != node.Granted {
				b.Fatal(r, err)
			}
		}
	}
}
