package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// NodeState is what a node's marker says. Its Reason may also be ReasonBarred.
type NodeState struct {
	Node string
	protocol.MarkerState
	protocol.Shown
	// TrustedFor is how long it has been trusted, by its own clock.
	TrustedFor time.Duration
	// Replicas is how many of its replicas are online.
	Replicas int
	// Now is its own clock when it answered, and seen when that was on ours.
	Now  time.Time
	seen time.Duration
	Err  error
}

// Silent reports whether the node has not reported its marker.
func (s NodeState) Silent() bool { return s.Err != nil && !errors.Is(s.Err, node.ErrConfig) }

// MarkNodes marks the nodes: by MarkWrite those that protocol.ToMark and ToTake name,
// by MarkFresh all of them. Another node is not changed. The
// states say which nodes could not be marked, and why. The error is ErrNotFresh,
// with the reason.
func (c *Cluster) MarkNodes(ctx context.Context, mark node.Mark) ([]NodeState, error) {
	states := c.AdoptMarkers(ctx, "")
	if mark != node.MarkFresh {
		after, _ := c.markNeeded(ctx, max(c.cfg.NodeTimeout, markLimit), "", states)
		for i, s := range after {
			if s.Err == nil && s.Marked == nil {
				after[i].Err = c.unconfirmed(s.Node, states)
			}
		}
		return after, nil
	}
	seen := c.see(states)
	if fresh, err := c.fresh(ctx, seen); !fresh {
		return states, err
	}
	of := c.lineages(seen, protocol.All(len(seen)))
	return c.markFor(ctx, max(c.cfg.NodeTimeout, markLimit), node.MarkRequest{Mark: mark}, c.members, states, of), nil
}

// see returns what the markers of this membership's nodes say.
func (c *Cluster) see(states []NodeState) []protocol.Seen {
	seen := make([]protocol.Seen, len(c.members))
	for i, s := range states[:len(seen)] {
		seen[i] = protocol.See(c.guard.parameters(), s.MarkerState, s.Err == nil, s.Lineage, c.members[i].epoch.Load())
	}
	return seen
}

// MarkMissing marks the nodes that have to be marked and may be, and returns the
// states of all.
func (c *Cluster) MarkMissing(ctx context.Context, before []NodeState) []NodeState {
	states, _ := c.markNeeded(ctx, max(c.cfg.NodeTimeout, markLimit), "", before)
	return states
}

// markNeeded marks the nodes that protocol.ToMark and ToTake name. before is what their
// markers say. It is the one rule for a MarkWrite: of init, of a check of readiness, and
// in the background. It returns the states, and the nodes that it sent a marker.
func (c *Cluster) markNeeded(ctx context.Context, limit time.Duration, name string, before []NodeState) (states []NodeState, mark protocol.Set) {
	for _, s := range before {
		c.guard.noteOther(s.Marked)
	}
	seen := c.see(before)
	returns := c.guard.returns.Load()
	if protocol.Returned(seen, returns) && c.guard.returns.CompareAndSwap(returns, 0) {
		returns = 0
	}
	mark = protocol.ToMark(seen, returns) | protocol.ToTake(seen, c.guard.parameters().Generation)
	of := c.lineages(seen, mark)
	c.note(ctx, limit, name, before, mark, of)
	states = slices.Clone(before)
	var members []*Member
	var known []NodeState
	for i, s := range before {
		if mark.Has(i) {
			members, known = append(members, c.members[i]), append(known, s)
		}
	}
	write := node.MarkRequest{Mark: node.MarkWrite, Name: name}
	for i, s := range c.markFor(ctx, limit, write, members, known, of) {
		states[members[i].index] = s
	}
	return states, mark
}

// note tells the nodes that are not to be marked the epochs of the others, as
// they are when those in mark have been marked. It comes before the marking: if
// that fails, the node has to be marked again anyway.
func (c *Cluster) note(ctx context.Context, limit time.Duration, name string, before []NodeState, mark protocol.Set, of lineages) {
	var members []*Member
	var known []NodeState
	for i, s := range before {
		if s.Err == nil && !mark.Has(i) && s.Lacks(of.epochs) {
			members, known = append(members, c.members[i]), append(known, s)
		}
	}
	if len(members) > 0 {
		// A node that is silent now leaves time for the marking.
		ctx, cancel := context.WithTimeout(ctx, c.cfg.NodeTimeout/2)
		defer cancel()
		c.markFor(ctx, limit, node.MarkRequest{Mark: node.MarkNote, Name: name}, members, known, lineages{epochs: of.epochs})
	}
}

// unconfirmed says why a node without a marker was not marked, by what protocol.ToMark
// went by: the states before that.
func (c *Cluster) unconfirmed(name string, states []NodeState) error {
	silent, then := []string(nil), "another membership was seen in service: see redlatch doctor"
	for _, s := range states {
		if s.Silent() {
			silent = append(silent, s.Node)
		}
	}
	if silent != nil {
		then = "or an answer from all of them; run redlatch init again when " + strings.Join(silent, " ") + " answers"
	}
	return fmt.Errorf("%w: %s was not marked: it has no marker, and %d of %d nodes confirm this membership, where %d are needed; %s",
		ErrUnconfirmed, name, protocol.Confirmed(c.see(states)), len(states), protocol.Quorum(len(states)), then)
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

// AdoptMarkers reads the markers that the lock name depends on, all of them if
// name is empty, and takes the parameters from them that the caller did not set.
func (c *Cluster) AdoptMarkers(ctx context.Context, name string) []NodeState {
	read := node.MarkRequest{Mark: node.MarkRead, Name: name}
	sentWith := c.guard.parameters()
	states := c.MarkAll(ctx, read, c.members, nil)
	if c.guard.adopt(markersIn(states), sentWith) {
		// They differ now from those that the markers were compared with, even if it was
		// a lock that adopted them meanwhile.
		return c.MarkAll(ctx, read, c.members, states)
	}
	return states
}

// markLimit is how long the marking of a node may take, if the node time limit
// is not longer: marking a cluster takes a request for each of its slots.
// readLeast is how long a marker may take to be read.
const (
	markLimit = 30 * time.Second
	readLeast = 5 * time.Second
)

// ReplaceMarkers marks members for this membership, with a quarantine of least. A node
// that is not in it is only told. before is what the members' markers say, and own those
// of this membership.
func (c *Cluster) ReplaceMarkers(ctx context.Context, least time.Duration, members []*Member, before, own []NodeState) []NodeState {
	var mark protocol.Set
	for i, m := range c.members {
		if slices.Contains(members, m) {
			mark |= protocol.Of(i)
		}
	}
	return c.markFor(ctx, max(c.cfg.NodeTimeout, markLimit), node.MarkRequest{Mark: node.MarkReplace, Least: least}, members, before, c.lineages(c.see(own), mark))
}

// MarkAll sends a MarkRequest to members concurrently and waits for all of them. Of
// members whose recent state is known, before, it skips those that did not answer
// then, and the others execute nothing after the client has stopped waiting: a
// late request might undo a later decision.
func (c *Cluster) MarkAll(ctx context.Context, req node.MarkRequest, members []*Member, before []NodeState) []NodeState {
	limit := markLimit
	if req.Mark == node.MarkRead && !slices.ContainsFunc(members, (*Member).hasManyMarkers) {
		limit = readLeast
	}
	return c.markFor(ctx, max(c.cfg.NodeTimeout, limit), req, members, before, lineages{})
}

// mark asks the node about its marker.
func (m *Member) mark(ctx context.Context, req node.MarkRequest) (node.MarkReply, error) {
	if n, ok := m.node.(node.Guarded); ok {
		return n.Mark(ctx, req)
	}
	return node.MarkReply{}, fmt.Errorf("redlatch: %s has no marker (%w)", m.name, node.ErrUnsent)
}

// hasManyMarkers reports whether the node takes many requests to be marked.
func (m *Member) hasManyMarkers() bool {
	n, ok := m.node.(node.ManyMarkers)
	return ok && n.ManyMarkers()
}

// markFor is MarkAll with a time limit, for a MarkRequest that may write: of has what.
func (c *Cluster) markFor(ctx context.Context, limit time.Duration, req node.MarkRequest, members []*Member, before []NodeState, of lineages) []NodeState {
	req.Guard = c.guard.parameters()
	states := make([]NodeState, len(members))
	// Before the first reply: what that says of epochs counts this marking already.
	own := make([]node.MarkRequest, len(members))
	for i, m := range members {
		own[i] = protocol.MarkWith(req, of.of[m], of.epochs, m.epoch.Load(), slices.Contains(c.members, m))
	}
	var all sync.WaitGroup
	for i, m := range members {
		req := own[i]
		if before != nil {
			if before[i].Silent() {
				states[i] = before[i]
				continue
			}
			// By its clock when we stop waiting, however long ago that was read: a
			// silent node must not use up the time of the others.
			req.Until = before[i].Now.Add(c.clock.Uptime() - before[i].seen + limit)
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			s := NodeState{Node: m.name}
			reply, err := m.mark(ctx, req)
			s.Err = err
			if err == nil {
				// A node that restarted with its data has a marker from before
				// the restart. It shows that the node was in service.
				s.seen = c.clock.Uptime()
				s.MarkerState, s.Shown, s.Now, s.Replicas = protocol.Says(&reply), protocol.ShownBy(&reply.Marker), reply.Now, reply.Replicas
				m.noteEpochs(&reply.Marker)
				switch reply.Status {
				case node.Granted:
					s.TrustedFor = reply.Now.Sub(reply.TrustedFrom)
					c.guard.inService.Store(true)
				case node.Stale:
					s.Err = fmt.Errorf("redlatch: the request came too late, at %v by the clock of %s: run it again", reply.Now, m.name)
				case node.Misconfigured:
					s.Err = c.Mismatch([]observe.Result{{Node: m.name, Reply: node.Reply{Status: reply.Status, Marker: reply.Marker}}}, 0)
				}
			}
			states[i] = s
		})
	}
	all.Wait()
	for i, m := range members {
		if s := &states[i]; s.Err == nil {
			s.MarkerState = protocol.Believed(s.MarkerState, s.Epoch, m.epoch.Load())
		}
	}
	return states
}
