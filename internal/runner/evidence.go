package runner

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file decides whether nodes may be trusted at once, because they are new.
// A node that has lost all data looks like a new one. So any trace of earlier
// use counts against it: a marker, a key, or what this client has seen.

// noteService records that the nodes are in service: one of them has granted,
// or has named a holder.
func (g *guard) noteService(op node.Op, status node.Status) {
	switch {
	case !g.on || g.inService.Load():
	case op == node.OpAcquire && status == node.Held,
		status == node.Granted && (op == node.OpAcquire || op == node.OpExtend || op == node.OpRepair):
		g.inService.Store(true)
	}
}

// notFresh returns an error if there is any trace that the nodes, which are in
// these states, have been in service.
func (c *Cluster) notFresh(ctx context.Context, states []NodeState) error {
	used := 0
	for _, s := range states {
		if protocol.BeenInService(s.Marked, s.Trusted, s.Left, s.Reason) {
			used++
		}
	}
	if used > 0 {
		return fmt.Errorf("%w: %d of %d are, or have been, in service", ErrNotFresh, used, len(states))
	}
	if c.guard.inService.Load() {
		return fmt.Errorf("%w: this client has seen them in service, so they have lost their data", ErrNotFresh)
	}
	keys := make([]string, len(c.members))
	errs := c.Each(ctx, 0, func(ctx context.Context, m *Member) error {
		n, ok := m.node.(node.Evidencer)
		if !ok {
			return nil
		}
		return WhileItGoesOn(ctx, max(WalkLimit, c.cfg.NodeTimeout), func(ctx context.Context) error {
			key, err := n.Evidence(ctx)
			if err == nil {
				keys[m.index] = key
			}
			return err
		})
	})
	for i, m := range c.members {
		switch {
		case errs[i] != nil:
			return fmt.Errorf("%w: %s cannot be searched for locks from before: %w", ErrNotFresh, m.name, errs[i])
		case keys[i] != "":
			return fmt.Errorf("%w: %s has the key %q, so it has kept locks before", ErrNotFresh, m.name, keys[i])
		}
	}
	return nil
}
