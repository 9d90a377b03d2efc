package runner

import (
	"context"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// learnMarkers reads the markers and takes from them the parameters that the
// caller did not set. It returns as soon as a quorum of nodes agrees. It does
// not wait for a frozen minority, even if the driver ignores the context.
func (c *Cluster) learnMarkers(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := c.guard.parameters()
	answers := make(chan NodeState, len(c.members))
	for _, m := range c.members {
		go func() { answers <- c.MarkAll(ctx, node.Request{Mark: node.MarkRead}, []*Member{m})[0] }()
	}
	var states []NodeState
	votes := map[node.Guard]int{}
	for range c.members {
		select {
		case s := <-answers:
			states = append(states, s)
			if s.Marked == nil {
				continue
			}
			said := *s.Marked
			said.Nodes = "" // the membership as text; only its id is compared
			if votes[said]++; votes[said] >= protocol.Quorum(len(c.members)) {
				c.adoptStates([]NodeState{s}, asked)
				return
			}
		case <-ctx.Done():
		}
	}
	c.adoptStates(states, asked)
}

// adoptStates takes the parameters that the caller did not set from the
// markers. It reports whether they now differ from asked, with which the
// markers were read. The markers then have to be read again, even if it was a
// lock that adopted the parameters meanwhile.
func (c *Cluster) adoptStates(states []NodeState, asked *node.Guard) bool {
	for _, s := range states {
		theirs := node.Result{Node: s.Node, Reply: node.Reply{Status: node.Misconfigured, Guard: s.Marked}}
		if s.Marked != nil && c.guard.adopt([]node.Result{theirs}, asked) {
			return true
		}
	}
	return false
}
