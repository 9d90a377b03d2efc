package admin

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/inside"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// awaitTrust waits until every node of the client is trusted. states are those
// of the client's nodes, and after them those of others that were marked with
// them. A node that loses its data meanwhile is marked again, and waited for.
func (a *Admin) awaitTrust(ctx context.Context, states []runner.NodeState, progress func([]NodeState)) ([]runner.NodeState, error) {
	var others []runner.NodeState
	for _, s := range states[len(a.c.Members()):] {
		if s.Silent() {
			others = append(others, s) // it is waited for by nobody, and must not be forgotten
		}
	}
	states = states[:len(a.c.Members())]
	for {
		var left time.Duration
		waiting := false
		for _, s := range states {
			waiting = waiting || s.Err == nil && !s.Trusted
			left = max(left, s.Left)
		}
		if err := inside.MarkError(states); !waiting || errors.Is(err, node.ErrConfig) {
			return append(states, others...), err
		}
		if progress != nil {
			progress(public(states))
		}
		// Seldom at first, since marking a cluster takes a request for each of
		// its slots; and just when it is over.
		timer := time.NewTimer(max(min(left, max(left/10, time.Second)), 10*time.Millisecond))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return append(states, others...), inside.Ended(ctx)
		}
		next, _ := a.markNodes(ctx, node.MarkWrite)
		if ctx.Err() != nil {
			return append(states, others...), inside.Ended(ctx)
		}
		states = next
	}
}

// Quarantined returns the nodes that are out of service at present, as far as the
// client has noticed: fewer others may fail meanwhile. Each is described as it
// answered last, with why and for how long; for one whose reason is
// ReasonUnmarked or ReasonRemark, from when it is marked. It asks the nodes
// nothing.
func (a *Admin) Quarantined() []redlatch.NodeResult { return a.c.Quarantined() }
