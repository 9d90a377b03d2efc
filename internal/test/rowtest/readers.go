//go:build unix

package rowtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/casnode"
)

// Readers has as many readers as are allowed hold a name for 15 s, with a TTL of
// 10 s. None may be lost. It is no test: it takes a share of the machine that
// others may need.
func Readers(b *testing.B, n node.Node) {
	c := newClient(b, bounds(long), n)
	use(b, c, "other")
	for b.Loop() {
		all, begin := make([]*redlatch.Lease, casnode.MaxReaders), time.Now()
		var group sync.WaitGroup
		for i := range all {
			group.Go(func() { all[i] = lock(b, c, "doc", redlatch.LockOptions{Shared: true, TTL: long}) })
		}
		group.Wait()
		b.ReportMetric(time.Since(begin).Seconds(), "s-until-all-hold")
		time.Sleep(15 * time.Second)
		lost := 0
		for _, l := range all {
			if l.Err() != nil {
				lost++
			}
			group.Go(func() { l.Release(context.Background()) })
		}
		group.Wait()
		b.ReportMetric(float64(lost), "lost")
	}
}
