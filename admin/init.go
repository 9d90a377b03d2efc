package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
	"github.com/redlatch/redlatch/observe"
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
	// grant nothing until the change is run again and succeeds. A server that
	// was removed from another membership keeps its marker: to use it again, name
	// it here too. Name all nodes of the membership in service: a list that leaves
	// some in service is refused with ErrConfig, as far as the nodes' markers
	// show it. Defaults to none.
	Former []redlatch.Node
}

// NodeState is what a node's marker says.
type NodeState struct {
	Node string
	// Trusted says that the node grants locks.
	Trusted bool
	// Left is how long the node will be in quarantine; 0 if it is trusted, and while it
	// has to be marked.
	Left time.Duration
	// Reason is why it is in quarantine. ReasonBarred does not end by itself:
	// Left is 0, and Err says what to do.
	Reason string
	// Marked is its marker; nil if it has none.
	Marked *node.Guard
	// Replicas is how many of its replicas are online.
	Replicas int
	Err      error
}

// public converts states for callers.
func public(states []runner.NodeState) []NodeState {
	out := make([]NodeState, len(states))
	for i, s := range states {
		out[i] = NodeState{Node: s.Node, Trusted: s.Trusted, Left: s.Left, Reason: s.Reason, Marked: s.Marked, Replicas: s.Replicas, Err: s.Err}
	}
	return out
}

// Init marks the nodes for the client's membership, and returns the state of
// each. A node that is already marked is not changed. Every node must answer.
// The error names one that does not; it can be marked later.
func (a *Admin) Init(ctx context.Context, opts *InitOptions) ([]NodeState, error) {
	o := optional.Value(opts)
	for i, m := range a.c.Members() {
		if _, ok := m.Node().(node.Guarded); !ok {
			return nil, &node.ConfigError{Field: fmt.Sprintf("nodes[%d]", i), Value: m.Name(), Bound: "a node that can be marked",
				Problem: m.Name() + " needs no init: it has no restart guard"}
		}
	}
	if len(o.Former) == 0 {
		if err := a.requiresAll(ctx); err != nil {
			return nil, err
		}
	}
	var states []runner.NodeState
	var err error
	switch {
	case len(o.Former) > 0 && o.AssumeFresh:
		return nil, &node.ConfigError{Field: "AssumeFresh", Value: true, Bound: "false when the membership changes: the former nodes are in service"}
	case len(o.Former) > 0:
		states, err = a.changeMembership(ctx, o.Former)
	case o.AssumeFresh:
		states, err = a.markNodes(ctx, node.MarkFresh)
	default:
		states, err = a.markNodes(ctx, node.MarkWrite)
	}
	if err == nil && o.Wait {
		states, err = a.awaitTrust(ctx, states, o.Progress)
	}
	return public(states), err
}

// requiresAll refuses a number of required replicas that is above 0 and below
// the number of all: a replica that changes sides unseen then lets a second
// holder in. A number that the caller did not set is that of the markers.
func (a *Admin) requiresAll(ctx context.Context) error {
	required := a.c.Parameters().Replicas
	for _, m := range a.c.Members() {
		n, ok := m.Node().(node.ReplicaCounter)
		if !ok {
			continue
		}
		all, known, err := n.ListedReplicas(ctx)
		if known && required == 0 {
			a.c.AdoptMarkers(ctx, "")
			required = a.c.Parameters().Replicas
		}
		switch {
		case !known:
		case required == 0:
			return nil
		case err != nil:
			return fmt.Errorf("%w: how many replicas %s has is not known: %w; nothing was changed: run this again when a sentinel answers SENTINEL MASTER", redlatch.ErrNoQuorum, m.Name(), err)
		case required < all:
			return &node.ConfigError{Field: "Replicas", Value: required, Bound: fmt.Sprintf(
				"%d, the number of all replicas that the sentinels of %s list: with fewer, one that changes sides lets a second holder in; nothing was changed: require %d (redlatch init --replicas; nodes that are marked already also need --former), or, if a replica is gone for good, execute SENTINEL RESET on each sentinel, one after the other, so that they forget it",
				all, m.Name(), all)}
		}
	}
	return nil
}

// markNodes marks the client's nodes, by MarkWrite or MarkFresh.
func (a *Admin) markNodes(ctx context.Context, mark node.Mark) ([]runner.NodeState, error) {
	states, err := a.c.MarkNodes(ctx, mark)
	return states, cmp.Or(err, markError(states))
}

// markError returns an error if a node could not be marked.
func markError(states []runner.NodeState) error {
	e := &redlatch.QuorumError{Op: node.OpMark, Need: len(states)}
	bad := false
	for _, s := range states {
		if errors.Is(s.Err, node.ErrConfig) {
			return s.Err
		}
		r := observe.Result{Node: s.Node, Err: s.Err}
		r.Reply.Status = node.Granted
		e.Nodes = append(e.Nodes, r)
		bad = bad || s.Err != nil
	}
	if bad {
		return e
	}
	return nil
}

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
			return append(states, others...), lockerrors.Ended(ctx, nil)
		}
		next, _ := a.markNodes(ctx, node.MarkWrite)
		if ctx.Err() != nil {
			return append(states, others...), lockerrors.Ended(ctx, nil)
		}
		states = next
	}
}

// Quarantined returns the nodes that are out of service, as far as the client
// has noticed. Fewer other nodes may fail meanwhile. Each entry is the node's
// last answer, with the reason and the time left. One that NeedsMark has
// that time left from the moment when it is marked. Quarantined sends no request.
func (a *Admin) Quarantined() []observe.Result { return a.c.Quarantined() }
