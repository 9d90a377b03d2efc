//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// BenchmarkPairs measures what a pair, acquire and release, costs: the server's
// processor time by INFO cpu, and this process's. So many goroutines have names of
// their own.
func BenchmarkPairs(b *testing.B) {
	for _, goroutines := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			s := servertest.Redis(b, 1)[0]
			nodes, err := direct.Nodes(s.URL())
			if err != nil {
				b.Fatal(err)
			}
			n := nodes[0]
			defer n.Close()
			guard := &node.Guard{Membership: "0123456789abcdef", Nodes: "a b c", MaxTTL: time.Hour, Window: time.Hour, Quarantine: time.Second}
			var last atomic.Int64
			last.Store(time.Now().UnixMicro())
			do := func(req node.Request) {
				if r, err := n.Do(context.Background(), req); err != nil || r.Status != node.Granted {
					b.Error(req, r, err)
				}
			}
			pair := func(name string) {
				req := node.Request{Op: node.OpAcquire, Guard: guard, Name: name, Value: fmt.Sprintf("%032x:host/1/label", last.Add(1)),
					Token: node.Token(last.Add(1)), TTL: time.Minute, Retention: time.Hour, Window: time.Hour}
				do(req)
				req.Op = node.OpRelease
				do(req)
			}
			do(node.Request{Op: node.OpMark, Guard: guard, Mark: node.MarkFresh})
			pair("first")
			server, client := serverCPU(b, s), processCPU()
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			for g := range goroutines {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						pair(fmt.Sprint("own/", g))
					}
				})
			}
			all.Wait()
			b.ReportMetric((serverCPU(b, s)-server).Seconds()*1e6/float64(b.N), "server-µs/pair")
			b.ReportMetric((processCPU()-client).Seconds()*1e6/float64(b.N), "client-µs/pair")
		})
	}
}

var usedCPU = regexp.MustCompile(`used_cpu_(?:sys|user):([0-9.]+)`)

// serverCPU is the processor time that a server has used.
func serverCPU(b *testing.B, s *servertest.Server) (sum time.Duration) {
	b.Helper()
	for _, m := range usedCPU.FindAllStringSubmatch(s.Do("INFO", "cpu"), 2) {
		seconds, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(seconds * 1e9)
	}
	return sum
}

// processCPU is the processor time that this process has used.
func processCPU() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
