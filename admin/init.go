package admin

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/inside"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// ErrNotFresh is returned by Init with AssumeFresh when nodes are, or have
// been, in service.
var ErrNotFresh = runner.ErrNotFresh

// InitOptions are the settings of Init. The zero value works.
type InitOptions struct {
	// Wait makes Init wait until the nodes are trusted: after the quarantine,
	// 32 s by default. Use it to bring nodes into service, both new nodes and
	// nodes that lost all data. Defaults to false: Init marks the nodes and
	// returns, and they are trusted when the quarantine is over.
	Wait bool

	// Progress is called from time to time while Init waits, with the state of
	// each node. Defaults to none.
	Progress func([]NodeState)

	// AssumeFresh declares that the nodes are brand-new, so that they are
	// trusted at once. It is for tests and first installations. After all nodes
	// have lost their data, it would let in a second holder while an earlier
	// lock is still valid: use Wait then. It is refused with ErrNotFresh if
	// there is any trace of earlier use: a marker, a key of a lock, or what
	// this client has seen. Defaults to false.
	AssumeFresh bool

	// Former is the former membership, for a membership change. For a node of
	// both memberships pass the same node as to the client. No lock is granted
	// until the quarantine is over, neither to clients of the former membership
	// nor to those of the new one; leases of the former one expire. A change
	// that fails leaves the nodes whose Reason is ReasonBarred barred: they
	// grant nothing until the change is run again and succeeds. Defaults to
	// none.
	Former []redlatch.Node

	// Retired marks nodes that carry the marker of a membership that they were
	// removed from; such a marker stays on the node. It is refused for a node
	// that is still in the membership of its marker. Defaults to false.
	Retired bool
}

// NodeState is what a node's marker says.
type NodeState struct {
	Node string
	// Trusted says that the node grants locks.
	Trusted bool
	// Left is how long the node will be in quarantine; 0 if it is trusted.
	Left time.Duration
	// Reason is why it is in quarantine. ReasonBarred does not end by itself:
	// Left is 0, and Err says what to do.
	Reason string
	// Marked is its marker; nil if it has none.
	Marked *node.Guard
	// TrustedFor is how long it has been trusted, by its own clock.
	TrustedFor time.Duration
	// Replicas is how many of its replicas are online.
	Replicas int
	// Now is its own clock when it answered.
	Now time.Time
	Err error
}

// public converts states for callers.
func public(states []runner.NodeState) []NodeState {
	out := make([]NodeState, len(states))
	for i, s := range states {
		out[i] = NodeState(s)
	}
	return out
}

// Init marks the nodes for the client's membership, and returns the state of
// each. A node that is already marked is not changed. Every node must answer.
// The error names one that does not; it can be marked later.
func (a *Admin) Init(ctx context.Context, opts InitOptions) ([]NodeState, error) {
	for i, m := range a.c.Members() {
		if _, ok := m.Node().(node.Guarded); !ok {
			return nil, &node.ConfigError{Field: fmt.Sprintf("nodes[%d]", i), Value: m.Name(), Bound: "a node that can be marked"}
		}
	}
	var states []runner.NodeState
	var err error
	switch {
	case opts.Retired && (opts.AssumeFresh || len(opts.Former) > 0):
		return nil, &node.ConfigError{Field: "Retired", Value: true, Bound: "false together with AssumeFresh or Former"}
	case len(opts.Former) > 0 && opts.AssumeFresh:
		return nil, &node.ConfigError{Field: "AssumeFresh", Value: true, Bound: "false when the list is changed: the nodes of the former list are in service"}
	case opts.Retired:
		states, err = a.retire(ctx)
	case len(opts.Former) > 0:
		states, err = a.changeList(ctx, opts.Former)
	case opts.AssumeFresh:
		states, err = a.markNodes(ctx, node.MarkFresh)
	default:
		states, err = a.markNodes(ctx, node.MarkWrite)
	}
	if err == nil && opts.Wait {
		states, err = a.awaitTrust(ctx, states, opts.Progress)
	}
	return public(states), err
}

// markNodes marks the client's nodes, by MarkWrite or MarkFresh.
func (a *Admin) markNodes(ctx context.Context, mark node.Mark) ([]runner.NodeState, error) {
	states, err := a.c.MarkNodes(ctx, mark)
	return states, cmp.Or(err, inside.MarkError(states))
}
