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

// ErrNotFresh is returned by Init when nodes were declared new that are, or
// have been, in service.
var ErrNotFresh = runner.ErrNotFresh

// InitOptions say how the nodes of a client are marked.
type InitOptions struct {
	// Wait has Init return when the nodes are trusted: after the quarantine,
	// 32 s by default. This is how nodes come into service, new ones and those
	// that lost all their data alike. Defaults to false: Init marks the nodes
	// and returns, and they are trusted by themselves when it is over.
	Wait bool

	// Progress is called from time to time while Init waits, with what is
	// known of each node. Defaults to none.
	Progress func([]NodeState)

	// AssumeFresh declares that the nodes are brand-new, and has them trusted
	// at once. It is for tests and first installations. After all nodes lost
	// their data it lets a second holder in, while a lock from before is still
	// valid: then Wait. It is refused with ErrNotFresh where anything is left
	// of an earlier service: a marker, a key of a lock, or what this client
	// has seen. Defaults to false.
	AssumeFresh bool

	// Former is the list of nodes as it was, when the list is being changed.
	// Nodes on both lists are given as they are in the new one. Until the
	// quarantine is over nobody is granted a lock, by the old list or the new
	// one; leases by the old one run out. A change that fails has barred the
	// nodes whose Reason is ReasonBarred: they grant nothing until it is run
	// again, and brought to its end. Defaults to none.
	Former []redlatch.Node

	// Retired has nodes marked for the client's list that are marked for one
	// which they are no longer on: a node that was taken off a list keeps that
	// list's marker. It is refused for a node that is on the list that it is
	// marked for. Defaults to false.
	Retired bool
}

// NodeState is what a node's marker says.
type NodeState struct {
	Node string
	// Trusted says that the node grants.
	Trusted bool
	// Left is how long the node is in quarantine; 0 if it is trusted.
	Left time.Duration
	// Reason is why it is in quarantine. ReasonBarred has no end by itself, so Left
	// is 0, and Err says what to do.
	Reason string
	// Marked is what it is marked with; nil if it is not.
	Marked *node.Guard
	// TrustedFor is for how long it has been trusted, by its own clock.
	TrustedFor time.Duration
	// Replicas is how many of its replicas are online.
	Replicas int
	// Now is its own clock when it answered.
	Now time.Time
	Err error
}

// public returns states as callers see them.
func public(states []runner.NodeState) []NodeState {
	out := make([]NodeState, len(states))
	for i, s := range states {
		out[i] = NodeState(s)
	}
	return out
}

// Init marks the nodes for the client's list, and says what became of each. A
// node that is marked already stays as it is. Every node must answer: one that
// does not is named in the error, and can be marked later.
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
