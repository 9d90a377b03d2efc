package admin

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/errs"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// awaitTrust waits until every node of the client is trusted. states begins
// with the client's nodes; other nodes that were marked with them follow. A
// node that loses its data meanwhile is marked again and waited for.
func (a *Admin) awaitTrust(ctx context.Context, states []runner.NodeState, progress func([]NodeState)) ([]runner.NodeState, error) {
	var others []runner.NodeState
	for _, s := range states[len(a.c.Members()):] {
		if s.Silent() {
			others = append(others, s) // it is not waited for, but it must be returned
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
		if err := markError(states); !waiting || errors.Is(err, node.ErrConfig) {
			return append(states, others...), err
		}
		if progress != nil {
			progress(public(states))
		}
		// Seldom at first, because marking a cluster takes a request for each
		// of its slots; and exactly when the quarantine is over.
		timer := time.NewTimer(max(min(left, max(left/10, time.Second)), 10*time.Millisecond))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return append(states, others...), errs.Ended(ctx, nil)
		}
		next, _ := a.markNodes(ctx, node.MarkWrite)
		if ctx.Err() != nil {
			return append(states, others...), errs.Ended(ctx, nil)
		}
		states = next
	}
}

// Quarantined returns the nodes that are out of service, as far as the client
// has noticed. Fewer other nodes may fail meanwhile. Each entry is the node's
// last answer, with the reason and the time left. A node whose reason is
// ReasonUnmarked or ReasonRemark has that time left from the moment when it is
// marked. Quarantined sends no request.
func (a *Admin) Quarantined() []node.Result { return a.c.Quarantined() }
