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

func BenchmarkExtend(b *testing.B) {
	benchmarkHeld(b, node.OpExtend, "holder", node.Granted)
}

func BenchmarkRefusedAcquire(b *testing.B) {
	benchmarkHeld(b, node.OpAcquire, "another", node.Held)
}

func BenchmarkInspect(b *testing.B) {
	benchmarkHeld(b, node.OpInspect, "", node.Held)
}

// benchmarkHeld measures one operation on a name that is held.
func benchmarkHeld(b *testing.B, op node.Op, value string, want node.Status) {
	n := mustOpen(b, filepath.Join(b.TempDir(), "locks.db"), systemTime())
	ctx := context.Background()
	req := node.Request{
		Op: node.OpAcquire, Name: "bench", Value: "holder",
		TTL: time.Hour, Window: time.Minute, Retention: time.Hour,
		Token: node.Token(time.Now().UnixMicro()),
	}
	if r, err := n.Do(ctx, req); err != nil || r.Status != node.Granted {
		b.Fatal(r, err)
	}
	req.Op, req.Value = op, value
	b.ReportAllocs()
	for b.Loop() {
		if r, err := n.Do(ctx, req); err != nil || r.Status != want {
			b.Fatal(r, err)
		}
	}
}

func BenchmarkOpenAndClose(b *testing.B) {
	path := filepath.Join(b.TempDir(), "locks.db")
	mustOpen(b, path, systemTime()).Close()
	b.ReportAllocs()
	for b.Loop() {
		n, err := Open(path, nil)
		must(b, err)
		must(b, n.Close())
	}
}
