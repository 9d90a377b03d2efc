package runner

import (
	"context"
	"slices"
	"sync"

	"github.com/redlatch/redlatch/node"
)

// Survey sends a request that is no part of a claim to all nodes at once. It
// returns when enough reports true for the answers so far, when all nodes have
// answered, or when ctx or the node time limit ends. A node that has not
// answered has ErrNodeTimeout. The other requests go on in the background.
func (c *Cluster) Survey(ctx context.Context, req node.Request, enough func([]node.Result) bool) []node.Result {
	results := make([]node.Result, len(c.members))
	for i, m := range c.members {
		results[i] = node.Result{Node: m.name, Err: ErrNodeTimeout}
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.limit(req.TTL))
	_ = context.AfterFunc(limited, cancel) // at the latest
	var mu sync.Mutex
	decided := make(chan struct{})
	left, over := len(c.members), false
	for i, m := range c.members {
		c.Go(func() {
			r := m.Call(limited, req)
			mu.Lock()
			defer mu.Unlock()
			results[i] = r
			left--
			if left == 0 {
				cancel()
			}
			if !over && (left == 0 || enough(results)) {
				over = true
				close(decided)
			}
		})
	}
	select {
	case <-decided:
	case <-ctx.Done():
	case <-limited.Done(): // drivers that do not return when their context ends
	}
	mu.Lock()
	defer mu.Unlock()
	over = true
	return slices.Clone(results)
}
