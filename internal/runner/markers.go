package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// NodeState is what a node's marker says.
type NodeState struct {
	Node string
	// Trusted says that the node grants locks.
	Trusted bool
	// Left is how long the node will be in quarantine; 0 if it is trusted.
	Left time.Duration
	// Reason is why it is in quarantine, or ReasonBarred.
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

// Silent reports whether the node has not reported its marker.
func (s NodeState) Silent() bool { return s.Err != nil && !errors.Is(s.Err, node.ErrConfig) }

// MarkNodes marks the nodes, by MarkWrite or MarkFresh. A node that is already
// marked is not changed. The states say which nodes could not be marked. The
// error is ErrNotFresh, with the reason.
func (c *Cluster) MarkNodes(ctx context.Context, mark node.Mark) ([]NodeState, error) {
	states := c.AdoptMarkers(ctx)
	if mark == node.MarkFresh {
		trusted := 0
		for _, s := range states {
			if s.Err != nil {
				return states, nil
			}
			if s.Trusted {
				trusted++
			}
		}
		if trusted == len(states) {
			return states, nil
		}
		if err := c.notFresh(ctx, states); err != nil {
			return states, err
		}
	}
	return c.MarkAfter(ctx, node.Request{Mark: mark}, c.members, states), nil
}

// Declare declares the nodes new before the first lock, if the caller asked for
// that. It tries once. If not every node answers, nothing is declared, and
// the guard decides as usual. It returns the nodes' states, as MarkNodes does,
// or nothing if there was nothing to do or ctx ended.
func (c *Cluster) Declare(ctx context.Context) ([]NodeState, error) {
	g := &c.guard
	if g.declared.Load() {
		return nil, nil
	}
	select {
	case g.declaring <- struct{}{}:
		defer func() { <-g.declaring }()
	case <-ctx.Done():
		return nil, nil
	}
	if g.declared.Load() {
		return nil, nil
	}
	limited, cancel := context.WithTimeout(ctx, declareLimit)
	defer cancel()
	states, err := c.MarkNodes(limited, node.MarkFresh)
	if ctx.Err() == nil {
		g.declared.Store(true)
	}
	return states, err
}

// AdoptMarkers reads the markers, and takes the parameters from them that the
// caller did not set.
func (c *Cluster) AdoptMarkers(ctx context.Context) []NodeState { return c.AdoptMarkersFor(ctx, "") }

// AdoptMarkersFor is AdoptMarkers for the marker that the lock name depends on;
// for all markers if name is empty.
func (c *Cluster) AdoptMarkersFor(ctx context.Context, name string) []NodeState {
	read := node.Request{Mark: node.MarkRead, Name: name}
	asked := c.guard.parameters()
	states := c.MarkAll(ctx, read, c.members)
	if c.adoptStates(states, asked) {
		return c.MarkAll(ctx, read, c.members)
	}
	return states
}

// markLimit is how long the marking of a node may take, if the node time limit
// is not longer: marking a cluster takes a request for each of its slots.
const markLimit = 30 * time.Second

// MarkAll sends an OpMark to all members concurrently and waits for all of
// them.
func (c *Cluster) MarkAll(ctx context.Context, req node.Request, members []*Member) []NodeState {
	return c.MarkAfter(ctx, req, members, nil)
}

// MarkAfter is MarkAll for members whose recent state is known. It skips those
// that did not answer then. The others execute nothing after the client has
// stopped waiting: a late request might undo a later decision.
func (c *Cluster) MarkAfter(ctx context.Context, req node.Request, members []*Member, before []NodeState) []NodeState {
	return c.markWithin(ctx, max(c.cfg.NodeTimeout, markLimit), req, members, before)
}

// markWithin is MarkAfter with a time limit, counted from the clocks in before.
func (c *Cluster) markWithin(ctx context.Context, limit time.Duration, req node.Request, members []*Member, before []NodeState) []NodeState {
	req.Op, req.Guard = node.OpMark, c.guard.parameters()
	states := make([]NodeState, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		req := req
		if before != nil {
			if before[i].Silent() {
				states[i] = before[i]
				continue
			}
			req.Until = before[i].Now.Add(limit)
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			s := NodeState{Node: m.name}
			reply, err := m.node.Do(ctx, req)
			s.Err = err
			if err == nil {
				// A node that restarted with its data has a marker from before
				// the restart. It shows that the node was in service.
				s.Marked, s.Now, s.Replicas = reply.Guard, reply.Now, reply.Replicas
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
					s.Err = c.Mismatch([]node.Result{{Node: m.name, Reply: reply}}, 0)
				}
			}
			states[i] = s
		})
	}
	all.Wait()
	return states
}
