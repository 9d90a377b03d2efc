package runner

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file collects what shows that nodes have been in service. Any trace of it
// counts.

// noteService records that the nodes are in service.
func (g *guard) noteService(op node.Op, status node.Status) {
	if g.on && !g.inService.Load() && protocol.ShowsService(op, status) {
		g.inService.Store(true)
	}
}

// fresh reports whether all nodes are new, as protocol.Declare decides, and why not.
func (c *Cluster) fresh(ctx context.Context, seen []protocol.Seen) (bool, error) {
	switch d, used := protocol.Declare(seen, c.guard.inService.Load()); d {
	case protocol.NothingToDeclare:
		return false, nil
	case protocol.UsedBefore:
		return false, fmt.Errorf("%w: %d of %d are, or have been, in service", ErrNotFresh, used, len(seen))
	case protocol.HaveLostData:
		return false, fmt.Errorf("%w: this client has seen them in service, so they have lost their data", ErrNotFresh)
	}
	for i, err := range c.priorUse(ctx) {
		if err != nil {
			return false, fmt.Errorf("%w: %s %w", ErrNotFresh, c.members[i].name, err)
		}
	}
	return true, nil
}

// priorUse searches the nodes for locks from before. The error of a node says
// that it has one, or that it could not be searched. A node without a search has
// none.
func (c *Cluster) priorUse(ctx context.Context) []error {
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
	for i, err := range errs {
		switch {
		case err != nil:
			errs[i] = fmt.Errorf("cannot be searched for locks from before: %w", err)
		case keys[i] != "":
			errs[i] = fmt.Errorf("has the key %q, so it has kept locks before", keys[i])
		}
	}
	return errs
}
