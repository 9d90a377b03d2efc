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
	var states []NodeState
	for range c.members {
		select {
		case s := <-answers:
			states = append(states, s)
			if agreed, ok := protocol.AgreedMarker(markersIn(states), len(c.members)); ok {
				c.guard.adopt([]node.Guard{agreed}, sentWith)
				return
			}
		case <-ctx.Done():
		}
	}
	c.guard.adopt(markersIn(states), sentWith)
}

// markersIn returns the nodes' markers.
func markersIn(states []NodeState) (theirs []node.Guard) {
	for _, s := range states {
		if s.Marked != nil {
			theirs = append(theirs, *s.Marked)
		}
	}
	return theirs
}
