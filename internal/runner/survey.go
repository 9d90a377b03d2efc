package runner

import (
	"context"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// Survey sends requests that are no part of a claim, all at once. It returns the
// answer of each node when enough reports true for one, when all have answered, or
// when ctx or the node time limit ends. A node that has not answered has
// ErrNodeTimeout. The other requests go on in the background.
func (c *Cluster) Survey(ctx context.Context, asks []protocol.Ask, enough func(protocol.Ask, node.Result) bool) []node.Result {
	type answer struct {
		ask    protocol.Ask
		result node.Result
	}
	results := make([]node.Result, len(c.members))
	for i, m := range c.members {
		results[i] = node.Result{Node: m.name, Err: ErrNodeTimeout}
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.NodeTimeout)
	_ = context.AfterFunc(limited, cancel) // at the latest
	answers := make(chan answer, len(asks))
	for _, a := range asks {
		c.Go(func() { answers <- answer{a, c.members[a.Node].Call(limited, a.Request)} })
	}
	for left := len(asks) - 1; left >= 0; left-- {
		select {
		case a := <-answers:
			results[a.ask.Node] = a.result
			if enough(a.ask, a.result) && left > 0 {
				return results
			}
		case <-ctx.Done():
			return results
		case <-limited.Done(): // drivers that do not return when their context ends
			return results
		}
	}
	cancel()
	return results
}
