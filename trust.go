package redlatch

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/node"
)

// awaitTrust waits until every node of the client is trusted. states are those
// of the client's nodes, and after them those of others that were marked with
// them. A node that loses its data meanwhile is marked again, and waited for.
func (c *Client) awaitTrust(ctx context.Context, states []NodeState, progress func([]NodeState)) ([]NodeState, error) {
	var others []NodeState
	for _, s := range states[len(c.members):] {
		if s.silent() {
			others = append(others, s) // it is waited for by nobody, and must not be forgotten
		}
	}
	states = states[:len(c.members)]
	for {
		var left time.Duration
		waiting := false
		for _, s := range states {
			waiting = waiting || s.Err == nil && !s.Trusted
			left = max(left, s.Left)
		}
		if err := statesError(states, len(states)); !waiting || errors.Is(err, ErrConfig) {
			return append(states, others...), err
		}
		if progress != nil {
			progress(states)
		}
		// Seldom at first, since marking a cluster takes a request for each of
		// its slots; and just when it is over.
		timer := time.NewTimer(max(min(left, max(left/10, time.Second)), 10*time.Millisecond))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return append(states, others...), endedError(ctx, nil)
		}
		next, _ := c.markNodes(ctx, node.MarkWrite)
		if ctx.Err() != nil {
			return append(states, others...), endedError(ctx, nil)
		}
		states = next
	}
}
