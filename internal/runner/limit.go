package runner

import (
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// This file says how long a client waits for nodes, by its settings and by
// protocol.LimitFor. Exclusion does not depend on it.

// limit is how long the client waits for a node's answer to a request with that
// TTL, or with none.
func (c *Cluster) limit(ttl time.Duration) time.Duration {
	limit := c.cfg.NodeTimeout
	if ttl == 0 {
		return limit
	}
	if !c.cfg.AnyTTL {
		limit = protocol.LimitFor(ttl)
	}
	return min(limit, ttl)
}

// patience is how long the client waits for a minority of nodes.
func (c *Cluster) patience() time.Duration { return min(protocol.Patience, c.cfg.NodeTimeout) }
