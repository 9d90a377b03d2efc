package redlatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// ErrNotFresh is returned by Init when nodes were declared new that are, or
// have been, in service.
var ErrNotFresh = errors.New("redlatch: nodes are not new")

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
	Former []Node

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
	// Left is how long the node sits out yet; 0 if it is trusted.
	Left time.Duration
	// Reason is why it sits out. ReasonBarred has no end by itself, so Left
	// is 0, and Err says what to do.
	Reason string
	// Marked is what it is marked with; nil if it is not.
	Marked *node.Guard
	// TrustedFor is for how long it has been trusted, by its own clock.
	TrustedFor time.Duration
	// Replicas is how many of its replicas are online.
	Replicas int
	Err      error

	now time.Time // on its own clock, when it said so
}

// Init marks the nodes for the client's list, and says what became of each. A
// node that is marked already stays as it is. Every node must answer: one that
// does not is named in the error, and can be marked later.
func (c *Client) Init(ctx context.Context, opts InitOptions) ([]NodeState, error) {
	for i, m := range c.members {
		if _, ok := m.node.(node.Guarded); !ok {
			return nil, &ConfigError{Field: fmt.Sprintf("nodes[%d]", i), Value: m.name, Bound: "a node that can be marked"}
		}
	}
	var states []NodeState
	var err error
	switch {
	case opts.Retired && (opts.AssumeFresh || len(opts.Former) > 0):
		return nil, &ConfigError{Field: "Retired", Value: true, Bound: "false together with AssumeFresh or Former"}
	case len(opts.Former) > 0 && opts.AssumeFresh:
		return nil, &ConfigError{Field: "AssumeFresh", Value: true, Bound: "false when the list is changed: the nodes of the former list are in service"}
	case opts.Retired:
		states, err = c.retire(ctx)
	case len(opts.Former) > 0:
		states, err = c.changeList(ctx, opts.Former)
	case opts.AssumeFresh:
		states, err = c.markNodes(ctx, node.MarkFresh)
	default:
		states, err = c.markNodes(ctx, node.MarkWrite)
	}
	if err != nil || !opts.Wait {
		return states, err
	}
	return c.awaitTrust(ctx, states, opts.Progress)
}

// markNodes marks the client's nodes, by MarkWrite or MarkFresh.
func (c *Client) markNodes(ctx context.Context, mark node.Mark) ([]NodeState, error) {
	states := c.adoptMarkers(ctx)
	if mark == node.MarkFresh {
		if err := statesError(states, len(states)); err != nil {
			return states, err
		}
		if count(states, func(s NodeState) bool { return s.Trusted }) == len(states) {
			return states, nil
		}
		if err := c.notFresh(ctx, states); err != nil {
			return states, err
		}
	}
	states = c.markAfter(ctx, node.Request{Mark: mark}, c.members, states)
	return states, statesError(states, len(states))
}

// adoptMarkers reads the markers, and takes from them what the caller left
// open.
func (c *Client) adoptMarkers(ctx context.Context) []NodeState { return c.adoptMarkersFor(ctx, "") }

// adoptMarkersFor is adoptMarkers for the marker that the lock name depends on;
// all of them if it is empty.
func (c *Client) adoptMarkersFor(ctx context.Context, name string) []NodeState {
	read := node.Request{Mark: node.MarkRead, Name: name}
	asked := c.guard.bounds()
	states := c.markAll(ctx, read, c.members)
	if c.adoptStates(states, asked) {
		return c.markAll(ctx, read, c.members)
	}
	return states
}

// markLimit is how long a node may take to be marked, where the node time limit
// is not longer: marking a cluster takes a request for each of its slots.
const markLimit = 30 * time.Second

// markAll sends an OpMark to every member at once and waits for all of them.
func (c *Client) markAll(ctx context.Context, req node.Request, members []*member) []NodeState {
	return c.markAfter(ctx, req, members, nil)
}

// markAfter is markAll for members of which it is known how they stood a moment
// before. Those that did not answer then are left out. The others carry out
// nothing once we have stopped waiting: what is late may undo what was decided
// since.
func (c *Client) markAfter(ctx context.Context, req node.Request, members []*member, before []NodeState) []NodeState {
	return c.markWithin(ctx, max(c.opts.NodeTimeout, markLimit), req, members, before)
}

// markWithin is markAfter with a time limit, counted from what was known before.
func (c *Client) markWithin(ctx context.Context, limit time.Duration, req node.Request, members []*member, before []NodeState) []NodeState {
	req.Op, req.Guard = node.OpMark, c.guard.bounds()
	states := make([]NodeState, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		req := req
		if before != nil {
			if before[i].silent() {
				states[i] = before[i]
				continue
			}
			req.Until = before[i].now.Add(limit)
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			s := NodeState{Node: m.name}
			reply, err := m.node.Do(ctx, req)
			s.Err = err
			if err == nil {
				// A node that restarted with its data carries a marker that
				// is no longer its own; that it was in service shows in it.
				s.Marked, s.now, s.Replicas = reply.Guard, reply.Now, reply.Replicas
				switch reply.Status {
				case node.Granted:
					s.Trusted, s.TrustedFor = true, reply.Now.Sub(reply.TrustedFrom)
					c.guard.inService.Store(true)
				case node.Quarantined:
					s.Left, s.Reason = reply.Left, reply.Value
				case node.Stale:
					s.Err = fmt.Errorf("redlatch: the request came too late, at %v by the clock of %s: run it again", reply.Now, m.name)
				case node.Misconfigured:
					s.Left = reply.Left
					if reply.Guard.Barred() {
						s.Reason = node.ReasonBarred
					}
					s.Err = c.guard.mismatch(&round{results: []NodeResult{{Node: m.name, Reply: reply}}})
				}
			}
			states[i] = s
		})
	}
	all.Wait()
	return states
}

// statesError returns an error if a node could not be marked.
func statesError(states []NodeState, need int) error {
	e := &QuorumError{Op: node.OpMark, Name: "the list of nodes", Need: need}
	bad := false
	for _, s := range states {
		if errors.Is(s.Err, ErrConfig) {
			return s.Err
		}
		r := NodeResult{Node: s.Node, Err: s.Err}
		r.Reply.Status = node.Granted
		e.Nodes = append(e.Nodes, r)
		bad = bad || s.Err != nil
	}
	if bad {
		return e
	}
	return nil
}
