package runner

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file collects what shows that nodes have been in service.
// protocol.FreshByMarkers and protocol.FreshByKeys judge it.

// noteService records that the nodes are in service.
func (g *guard) noteService(op node.Op, status node.Status) {
	if g.on && !g.inService.Load() && protocol.ShowsService(op, status) {
		g.inService.Store(true)
	}
}

// notFresh returns an error if there is any trace that the nodes, which are in
// these states, have been in service.
func (c *Cluster) notFresh(ctx context.Context, states []NodeState) error {
	markings := make([]protocol.MarkerState, len(states))
	for i, s := range states {
		markings[i] = s.markerState()
	}
	switch f, used := protocol.FreshByMarkers(markings, c.guard.inService.Load()); f {
	case protocol.InService:
		return fmt.Errorf("%w: %d of %d are, or have been, in service", ErrNotFresh, used, len(states))
	case protocol.SeenInService:
		return fmt.Errorf("%w: this client has seen them in service, so they have lost their data", ErrNotFresh)
	}
	found, errs := c.priorUse(ctx)
	switch f, i := protocol.FreshByKeys(found); f {
	case protocol.Unsearched:
		return fmt.Errorf("%w: %s cannot be searched for locks from before: %w", ErrNotFresh, c.members[i].name, errs[i])
	case protocol.HasKeys:
		return fmt.Errorf("%w: %s has the key %q, so it has kept locks before", ErrNotFresh, c.members[i].name, found[i].Key)
	}
	return nil
}

// priorUse searches the nodes for locks from before. A node without a search has
// none.
func (c *Cluster) priorUse(ctx context.Context) ([]protocol.PriorUse, []error) {
	keys := make([]string, len(c.members))
	errs := c.ForEachNode(ctx, 0, func(ctx context.Context, m *Member) error {
		n, ok := m.node.(node.Evidencer)
		if !ok {
			return nil
		}
		return WithProgressTimeout(ctx, max(WalkLimit, c.cfg.NodeTimeout), func(ctx context.Context) error {
			key, err := n.Evidence(ctx)
			if err == nil {
				keys[m.index] = key
			}
			return err
		})
	})
	found := make([]protocol.PriorUse, len(c.members))
	for i, err := range errs {
		if found[i].Searched = err == nil; err == nil {
			found[i].Key = keys[i]
		}
	}
	return found, errs
}
