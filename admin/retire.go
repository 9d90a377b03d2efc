package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// retire marks nodes for the client's membership that carry the marker of a
// membership they were removed from. Removed nodes keep that marker, so that
// they refuse clients of the former membership.
func (a *Admin) retire(ctx context.Context) ([]runner.NodeState, error) {
	states := a.c.MarkAll(ctx, node.Request{Mark: node.MarkRead}, a.c.Members())
	if err := unanswered(slices.Clone(states)); err != nil {
		return states, fmt.Errorf("%w; nothing was changed: all nodes must answer", err)
	}
	var members []*runner.Member
	var before []runner.NodeState
	for i, s := range states {
		switch {
		case s.Marked == nil && s.Err == nil, s.Marked != nil && s.Marked.List == a.c.Parameters().List:
			continue // it has no marker, or one of this membership
		case s.Marked == nil, errors.Is(s.Err, node.ErrChanging):
			return states, s.Err
		}
		if err := removed(s); err != nil {
			return states, err
		}
		members, before = append(members, a.c.Members()[i]), append(before, s)
	}
	after := a.c.MarkAfter(ctx, node.Request{Mark: node.MarkReplace, TTL: sitsOut(states)}, members, before)
	for i, m := range members {
		states[m.Index()] = after[i]
	}
	return states, markError(states)
}

// removed returns an error unless it is certain that the node is not in the
// membership of its marker.
func removed(s runner.NodeState) error {
	list := s.Marked.Nodes
	switch {
	case slices.Contains(strings.Fields(list), s.Node):
		return &node.ConfigError{Field: "node", Value: s.Node, Bound: "one that was removed from its membership", Problem: fmt.Sprintf(
			"%s is in the membership that it is marked for, %q; nothing was changed; to remove it, run redlatch init --nodes NEW --former OLD", s.Node, list)}
	case strings.Contains(s.Node, "://") && !strings.Contains(list, "://"):
		return &node.ConfigError{Field: "node", Value: s.Node, Bound: "one that was removed from its membership", Problem: fmt.Sprintf(
			"%s is marked for a membership with the name %q, which does not show whether the node is still in it; nothing was changed; if it was removed, delete the marker (redis-cli DEL redlatch:1:marker)", s.Node, list)}
	}
	return nil
}
