package redlatch

import (
	"context"
	"errors"
	"sync"

	"github.com/redlatch/redlatch/internal/runner"
)

// Close releases all leases that are still held, concurrently, waits for
// requests in flight, and closes the nodes. If nodes do not answer, it takes
// two node time limits and a tenth of a second. What they have not confirmed by
// then is logged; locks that are left there expire after their TTL. The leases'
// contexts end with ErrReleased. Callers that wait for a lock get ErrClosed.
//
// Close can be called again, and from several goroutines: each call returns
// when the client is closed, with the same error. It must not be called from an
// Observer.
func (c *Client) Close() error {
	return c.cluster.Close(func(held []*runner.Claim) {
		var all sync.WaitGroup
		for _, cl := range held {
			all.Go(func() {
				cl.Lock()
				l := (*Lease)(cl.Owner().(*holding))
				l.closing = true
				cl.Unlock()
				if err := l.free(context.Background()); err != nil && !errors.Is(err, ErrLost) {
					l.warnNotFreed(err)
				}
			})
		}
		all.Wait()
	})
}
