//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/inside"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// BenchmarkHandOver measures hand-overs between goroutines of one process on one
// name, whose holders do nothing: with the hand-over inside the process, and
// without.
func BenchmarkHandOver(b *testing.B) {
	for _, servers := range []int{1, 5} {
		for _, goroutines := range []int{16, 64} {
			for _, off := range []bool{false, true} {
				b.Run(fmt.Sprintf("servers=%d/goroutines=%d/off=%v", servers, goroutines, off), func(b *testing.B) {
					var opts redlatch.Options
					if off {
						inside.SetNoHandOver(&opts)
					}
					c := handOverClient(b, servers, opts)
					var left atomic.Int64
					left.Store(int64(b.N))
					var last atomic.Uint64
					var all sync.WaitGroup
					b.ResetTimer()
					for range goroutines {
						all.Go(func() {
							for left.Add(-1) >= 0 {
								l, err := c.Lock(context.Background(), "one", nil)
								if err != nil {
									b.Error(err)
									return
								}
								if before := last.Swap(uint64(l.Token())); before >= uint64(l.Token()) {
									exclusion.Never(b, "token %d comes after %d", l.Token(), before)
								}
								if err := l.Release(context.Background()); err != nil {
									b.Error(err)
								}
							}
						})
					}
					all.Wait()
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "hand-overs/s")
				})
			}
		}
	}
}

// handOverClient returns a client of so many new servers.
func handOverClient(tb testing.TB, servers int, opts redlatch.Options) *redlatch.Client {
	var urls []string
	for _, s := range servertest.Redis(tb, servers) {
		urls = append(urls, s.URL())
	}
	nodes, err := direct.Nodes(urls...)
	must(tb, err)
	opts.AssumeFresh = true
	c, err := redlatch.New(nodes, &opts)
	must(tb, err)
	tb.Cleanup(func() { c.Close() })
	l, err := c.Lock(context.Background(), "first", nil)
	must(tb, err)
	must(tb, l.Release(context.Background()))
	time.Sleep(10 * time.Millisecond)
	return c
}

// TestExtensionThatReservesIsNotLostInABatch starts extensions of three names
// together, one of which reserves tokens.
func TestExtensionThatReservesIsNotLostInABatch(t *testing.T) {
	address := servertest.Redis(t, 1)[0].URL()
	var reqs []node.Request
	for _, name := range []string{"one", "two", "three"} {
		reqs = append(reqs, acquisition(name, "holder"))
	}
	together(t, address, reqs...)
	for i := range reqs {
		reqs[i].Op = node.OpExtend
	}
	reqs[1].Token, reqs[1].Reserve = reqs[1].Token+10, 5
	replies, errs := together(t, address, reqs...)
	for i, r := range replies {
		if errs[i] != nil || r.Status != node.Granted || r.Confirmed != (i == 1) {
			t.Errorf("%s: %v, reserved %v, %v", reqs[i].Name, r.Status, r.Confirmed, errs[i])
		}
	}
}
