package redlatch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrNotFresh is returned by Init when nodes were declared new that are, or
// have been, in service.
var ErrNotFresh = errors.New("redlatch: nodes are not new")

// InitOptions say how the nodes of a client are marked.
type InitOptions struct {
	// AssumeFresh declares that the nodes have nothing to forget, and are to
	// be trusted at once. It is refused with ErrNotFresh if any of them has
	// been in service. Defaults to false.
	AssumeFresh bool

	// Former is the list of nodes as it was, when the list is being changed.
	// Nodes on both lists are given as they are in the new one. Until the
	// quarantine is over nobody is granted a lock, by the old list or the new
	// one; leases by the old one run out. Defaults to none.
	Former []Node
}

// NodeState is what a node's marker says.
type NodeState struct {
	Node string
	// Left is how long the node sits out yet; 0 if it is trusted.
	Left time.Duration
	// Reason is why it sits out.
	Reason string
	// Marked is what it is marked with; nil if it is not.
	Marked *Guard
	Err    error
}

// Init marks the nodes for the client's list, and says what became of each. A
// node that is marked already stays as it is. Every node must answer: one that
// does not is named in the error, and can be marked later.
func (c *Client) Init(ctx context.Context, opts InitOptions) ([]NodeState, error) {
	for i, m := range c.members {
		if _, ok := m.node.(Guarded); !ok {
			return nil, &ConfigError{Field: fmt.Sprintf("nodes[%d]", i), Value: m.name, Bound: "a node that can be marked"}
		}
	}
	if len(opts.Former) > 0 {
		if opts.AssumeFresh {
			return nil, &ConfigError{Field: "AssumeFresh", Value: true, Bound: "false when the list is changed: the nodes of the former list are in service"}
		}
		return c.changeList(ctx, opts.Former)
	}
	mark := MarkWrite
	if opts.AssumeFresh {
		states := c.markAll(ctx, MarkRead, c.members)
		if err := statesError(states, len(states)); err != nil {
			return states, err
		}
		inService := 0
		for _, s := range states {
			// A node that sits out because it was first seen a moment ago has
			// not been in service yet.
			if s.Marked != nil && (s.Left == 0 || s.Reason != ReasonNew) {
				inService++
			}
		}
		switch {
		case inService == len(states):
			return states, nil
		case inService > 0:
			return states, fmt.Errorf("%w: %d of %d are marked as being in service", ErrNotFresh, inService, len(states))
		}
		mark = MarkFresh
	}
	states := c.markAll(ctx, mark, c.members)
	return states, statesError(states, len(states))
}

// changeList marks the nodes of both lists for the new one. Enough nodes of
// the former list must answer that those which do not are no quorum of it:
// otherwise the old list could go on granting.
func (c *Client) changeList(ctx context.Context, former []Node) ([]NodeState, error) {
	members := append([]*member(nil), c.members...)
	known := map[string]bool{}
	for _, m := range members {
		known[m.name] = true
	}
	for i, n := range former {
		if n == nil {
			return nil, &ConfigError{Field: fmt.Sprintf("Former[%d]", i), Value: nil, Bound: "a node"}
		}
		if _, ok := n.(Guarded); !ok {
			return nil, &ConfigError{Field: fmt.Sprintf("Former[%d]", i), Value: n.String(), Bound: "a node that can be marked"}
		}
		if !known[n.String()] {
			members = append(members, &member{node: n, name: n.String(), client: c})
		}
	}
	states := c.markAll(ctx, MarkReplace, members)
	unmarked := 0
	for _, n := range former {
		for _, s := range states {
			if s.Node == n.String() && s.Err != nil {
				unmarked++
			}
		}
	}
	if unmarked >= quorumOf(len(former)) {
		return states, fmt.Errorf("%w: %d nodes of the former list could not be marked, and are a quorum that may go on granting: %w",
			ErrNoQuorum, unmarked, statesError(states, len(states)))
	}
	return states, statesError(states[:len(c.members)], len(c.members))
}

// markAll sends an OpMark to every member at once and waits for all of them.
func (c *Client) markAll(ctx context.Context, mark Mark, members []*member) []NodeState {
	states := make([]NodeState, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			// Marking a cluster takes a request for each of its slots.
			ctx, cancel := context.WithTimeout(ctx, max(c.opts.NodeTimeout, 30*time.Second))
			defer cancel()
			s := NodeState{Node: m.name}
			reply, err := m.node.Do(ctx, Request{Op: OpMark, Mark: mark, Guard: c.guard.bounds()})
			s.Err = err
			if err == nil {
				s.Marked = reply.Guard
				if reply.Status == Quarantined {
					s.Left, s.Reason = reply.Left, reply.Value
				}
				if reply.Status == Misconfigured {
					s.Err = c.guard.mismatch(&round{results: []NodeResult{{Node: m.name, Reply: reply}}})
				}
				if reply.Status == Absent {
					s.Marked = nil
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
	e := &QuorumError{Op: OpMark, Name: "the list of nodes", Need: need}
	bad := false
	for _, s := range states {
		if errors.Is(s.Err, ErrConfig) {
			return s.Err
		}
		r := NodeResult{Node: s.Node, Err: s.Err}
		r.Reply.Status = Granted
		e.Nodes = append(e.Nodes, r)
		bad = bad || s.Err != nil
	}
	if bad {
		return e
	}
	return nil
}
