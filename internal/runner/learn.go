package runner

import (
	"context"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// learnMarkers reads the markers and takes from them the parameters that the
// caller did not set. It returns as soon as protocol.AgreedMarker finds a quorum
// that agrees. It does not wait for a frozen minority, even if the driver ignores
// the context.
func (c *Cluster) learnMarkers(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sentWith := c.guard.parameters()
	answers := make(chan NodeState, len(c.members))
	for _, m := range c.members {
		go func() { answers <- c.MarkAll(ctx, node.MarkRequest{Mark: node.MarkRead}, []*Member{m}, nil)[0] }()
	}
	var theirs []node.Guard
	for range c.members {
		select {
		case s := <-answers:
			if s.Marked == nil {
				continue
			}
			theirs = append(theirs, *s.Marked)
			if agreed, ok := protocol.AgreedMarker(theirs, len(c.members)); ok {
				c.guard.adopt([]node.Guard{agreed}, sentWith)
				return
			}
		case <-ctx.Done():
		}
	}
	c.guard.adopt(theirs, sentWith)
}

// adoptStates takes the parameters that the caller did not set from the
// markers. It reports whether they now differ from sentWith, with which the
// markers were read. The markers then have to be read again, even if it was a
// lock that adopted the parameters meanwhile.
func (c *Cluster) adoptStates(states []NodeState, sentWith *node.Guard) bool {
	var theirs []node.Guard
	for _, s := range states {
		if s.Marked != nil {
			theirs = append(theirs, *s.Marked)
		}
	}
	return c.guard.adopt(theirs, sentWith)
}
