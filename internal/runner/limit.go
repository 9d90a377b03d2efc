package runner

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file is how long nodes are waited for. Exclusion does not depend on it.

// limit is how long a node is waited for that was sent a request.
func (c *Cluster) limit(req node.Request) time.Duration {
	limit := c.cfg.NodeTimeout
	if req.TTL == 0 {
		return limit
	}
	if !c.cfg.AnyTTL {
		limit = protocol.LimitFor(req.TTL)
	}
	return min(limit, req.TTL)
}

// patience is how long a minority of nodes is waited for.
func (c *Cluster) patience() time.Duration { return min(protocol.Patience, c.cfg.NodeTimeout) }

// placeFor returns where the requests of a caller are sent: on its own goroutine
// if there is one node alone, that returns by the node time limit, and the caller
// cannot want to leave before that, since its context never ends.
func (c *Cluster) placeFor(ctx context.Context) place {
	if len(c.members) == 1 && c.members[0].prompt && ctx.Done() == nil {
		return onCaller
	}
	return elsewhere
}
