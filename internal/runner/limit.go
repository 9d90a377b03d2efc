package runner

import (
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file says how long a client waits for nodes, by its settings and by
// protocol.LimitFor. Exclusion does not depend on it.

// limit is how long the client waits for a node's answer to a request.
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

// patience is how long the client waits for a minority of nodes.
func (c *Cluster) patience() time.Duration { return min(protocol.Patience, c.cfg.NodeTimeout) }
