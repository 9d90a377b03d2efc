package runner

import (
	"context"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// learnMarkers reads the markers and takes from them what the caller left open.
// It returns as soon as a quorum of nodes says the same: a frozen minority is
// not waited for, whatever its driver does with the context.
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
			said.Nodes = "" // the membership in words; its id is compared
			if votes[said]++; votes[said] >= protocol.Quorum(len(c.members)) {
				c.adoptStates([]NodeState{s}, asked)
				return
			}
		case <-ctx.Done():
		}
	}
	c.adoptStates(states, asked)
}

// adoptStates takes from the markers what the caller left open. It reports
// whether the parameters are now other than asked, with which the markers were
// read: then they have to be read again, also if a lock adopted them meanwhile.
func (c *Cluster) adoptStates(states []NodeState, asked *node.Guard) bool {
	for _, s := range states {
		theirs := node.Result{Node: s.Node, Reply: node.Reply{Status: node.Misconfigured, Guard: s.Marked}}
		if s.Marked != nil && c.guard.adopt([]node.Result{theirs}, asked) {
			return true
		}
	}
	return false
}
