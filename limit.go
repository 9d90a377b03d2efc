package redlatch

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is how long nodes are waited for. Exclusion does not depend on it.

const (
	// leastLimit and mostLimit bound the node time limit where none is set: it
	// is a tenth of the TTL, so that an extension which had no answer can be
	// sent again a few times, over new connections, before the lease ends.
	leastLimit = 250 * time.Millisecond
	mostLimit  = 2 * time.Second
	// patience is how long the rest is waited for when a quorum has answered,
	// unless the quorum itself was slow; and after which a node that does not
	// answer is suspected not to.
	patience = 250 * time.Millisecond
	// slowness is how many times as long as the quorum the rest may take.
	slowness = 4
)

// limitFor is the node time limit for a TTL, where none is set.
func limitFor(ttl time.Duration) time.Duration {
	return max(leastLimit, min(ttl/10, mostLimit))
}

// limit is how long a node is waited for that was sent a request.
func (c *Client) limit(req node.Request) time.Duration {
	limit := c.opts.NodeTimeout
	if req.TTL == 0 {
		return limit
	}
	if !c.limitSet {
		limit = limitFor(req.TTL)
	}
	return min(limit, req.TTL)
}

// patience is how long a minority of nodes is waited for.
func (c *Client) patience() time.Duration { return min(patience, c.opts.NodeTimeout) }
