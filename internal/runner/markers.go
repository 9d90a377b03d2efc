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
	// Trusted says that the node grants.
	Trusted bool
	// Left is how long the node is in quarantine; 0 if it is trusted.
	Left time.Duration
	// Reason is why it is in quarantine, or ReasonBarred.
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

// Silent reports whether the node has said nothing of its marker.
func (s NodeState) Silent() bool { return s.Err != nil && !errors.Is(s.Err, node.ErrConfig) }

// MarkNodes marks the nodes, by MarkWrite or MarkFresh; a node that is marked
// already stays as it is. The states say which nodes could not be marked. The
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
// that. It is tried once: where not every node could be asked, the guard is as it
// was, and says what it has to say. It returns what became of the nodes, as
// MarkNodes does; nothing if there was nothing to do, or if ctx ended.
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

// AdoptMarkers reads the markers, and takes from them what the caller left
// open.
func (c *Cluster) AdoptMarkers(ctx context.Context) []NodeState { return c.adoptMarkersFor(ctx, "") }

// adoptMarkersFor is AdoptMarkers for the marker that the lock name depends on;
// all of them if it is empty.
func (c *Cluster) adoptMarkersFor(ctx context.Context, name string) []NodeState {
	read := node.Request{Mark: node.MarkRead, Name: name}
	asked := c.guard.parameters()
	states := c.MarkAll(ctx, read, c.members)
	if c.adoptStates(states, asked) {
		return c.MarkAll(ctx, read, c.members)
	}
	return states
}

// markLimit is how long a node may take to be marked, where the node time limit
// is not longer: marking a cluster takes a request for each of its slots.
const markLimit = 30 * time.Second

// MarkAll sends an OpMark to every member at once and waits for all of them.
func (c *Cluster) MarkAll(ctx context.Context, req node.Request, members []*Member) []NodeState {
	return c.MarkAfter(ctx, req, members, nil)
}

// MarkAfter is MarkAll for members whose state a moment before is known. Those
// that did not answer then are left out. The others execute nothing once we have
// stopped waiting: a late request might undo what was decided since.
func (c *Cluster) MarkAfter(ctx context.Context, req node.Request, members []*Member, before []NodeState) []NodeState {
	return c.markWithin(ctx, max(c.cfg.NodeTimeout, markLimit), req, members, before)
}

// markWithin is MarkAfter with a time limit, counted from what was known before.
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
				// A node that restarted with its data carries a marker that
				// is no longer its own; that it was in service shows in it.
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
