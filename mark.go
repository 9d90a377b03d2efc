package redlatch

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file brings nodes back into service that have lost their marker, or that
// carry one from before they restarted. The scripts that grant only say so; the
// marker is written by a request of its own, in the background, on whatever
// request noticed it first. The quarantine begins with that.

// marking is a client's marking of nodes. One is in flight at a time.
type marking struct {
	mu     sync.Mutex
	flight chan struct{} // closed when the one in flight is over; nil if none is
	marked int           // how many times a node was marked
	// idle is until when, on the client's clock, no other begins, since the
	// last found nothing that it may mark with these parameters.
	idle   time.Duration
	idleOf *node.Guard
}

// start has nodes marked in the background. name is the lock whose request has
// noticed that: in a cluster each slot has a marker.
func (mk *marking) start(c *Client, name string) {
	mk.mu.Lock()
	defer mk.mu.Unlock()
	if mk.flight != nil || c.clock.Uptime() < mk.idle && c.guard.bounds() == mk.idleOf || !c.background.start() {
		return
	}
	flight, asked := make(chan struct{}), c.guard.bounds()
	mk.flight = flight
	go func() {
		defer c.background.end()
		marked := c.markAgain(name)
		mk.mu.Lock()
		defer mk.mu.Unlock()
		mk.marked += marked
		if marked == 0 {
			mk.idle, mk.idleOf = c.clock.Uptime()+c.opts.NodeTimeout, asked
		}
		mk.flight = nil
		close(flight)
	}()
}

// count returns how many times a node was marked so far, and the marking that is
// in flight.
func (mk *marking) count() (int, chan struct{}) {
	mk.mu.Lock()
	defer mk.mu.Unlock()
	return mk.marked, mk.flight
}

// await waits for the marking in flight, if there is one, and reports whether
// any node was marked since it was done so many times.
func (mk *marking) await(ctx context.Context, since int, limit time.Duration) bool {
	if _, flight := mk.count(); flight != nil {
		t := time.NewTimer(limit)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		case <-flight:
		}
	}
	marked, _ := mk.count()
	return marked != since
}

// readLimit is how many node time limits the reading of the markers may take:
// if they hold parameters that the caller left open, they are read twice.
// markTime is how many it may take until a node is marked.
const (
	readLimit = 2
	markTime  = readLimit + 1
)

// markAgain marks the nodes that have to be, and returns how many it marked.
//
// A node that remembers this membership, from before it restarted, is marked for
// it again. One that remembers nothing is marked when a quorum confirms the
// membership and its parameters, or when every node has answered and none
// contradicts. One witness is not enough: after a membership change during which
// one node was away, that node would confirm the former membership.
func (c *Client) markAgain(name string) (marked int) {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit*c.opts.NodeTimeout)
	states := c.adoptMarkersFor(ctx, name)
	cancel()
	confirmed, answered := 0, 0
	for _, s := range states {
		if s.Err == nil {
			answered++
			if s.Marked != nil {
				confirmed++
			}
		}
	}
	sure := confirmed >= protocol.Quorum(len(states)) || answered == len(states)
	var members []*member
	var before []NodeState
	for i, s := range states {
		if s.Err == nil && (s.Marked == nil && sure || s.outdated()) {
			members, before = append(members, c.members[i]), append(before, s)
		}
	}
	if len(members) == 0 {
		return 0
	}
	ctx, cancel = context.WithTimeout(context.Background(), c.opts.NodeTimeout)
	defer cancel()
	write := node.Request{Mark: node.MarkWrite, Name: name}
	for i, s := range c.markWithin(ctx, markTime*c.opts.NodeTimeout, write, members, before) {
		if s.Err == nil && s.Left > 0 {
			marked++
			members[i].noteQuarantine(node.OpMark, node.Reply{Status: node.Quarantined, Value: s.Reason, Left: s.Left})
		}
	}
	return marked
}

// outdated reports whether the node carries a marker from before a restart or
// promotion, or by a clock that was set back since.
func (s NodeState) outdated() bool {
	return s.Marked != nil && !s.Trusted && (s.Left == 0 || s.Left > s.Marked.Quarantine && s.Reason != node.ReasonList)
}

// Quarantined returns the nodes that take no part at present, as far as this
// client has noticed: fewer others may fail meanwhile. Each is described as it
// answered last, with why and for how long yet; for one whose reason is
// ReasonUnmarked or ReasonRemark, from when it is marked. It asks the nodes
// nothing.
func (c *Client) Quarantined() []NodeResult {
	var out []NodeResult
	for _, m := range c.members {
		until, now := time.Duration(m.sitting.Load()), c.clock.Uptime()
		why := m.sitsFor.Load()
		if why == nil || until == 0 || until != unmarkedYet && until <= now {
			continue
		}
		left := until - now
		if until == unmarkedYet {
			left = c.guard.bounds().Quarantine
		}
		out = append(out, NodeResult{Node: m.name, Reply: node.Reply{Status: node.Quarantined, Value: *why, Left: left}})
	}
	return out
}

// unmarkedYet is until when a node sits out that is not marked: its quarantine
// has not begun.
const unmarkedYet time.Duration = 1

// noteQuarantine logs once when a node begins to sit out, and once when it is
// back. Only what is granted after a look at the marker shows that it is.
func (m *member) noteQuarantine(op node.Op, reply node.Reply) {
	if reply.Status == node.Quarantined || reply.NeedsMark() {
		until := max(m.client.clock.Uptime()+reply.Left, unmarkedYet+1)
		if reply.NeedsMark() {
			until = unmarkedYet
		}
		why := reply.Value // a copy, so that the reply need not be on the heap
		m.sitsFor.Store(&why)
		if before := m.sitting.Swap(int64(until)); before == 0 {
			left := reply.Left
			if reply.NeedsMark() {
				left = m.client.guard.bounds().Quarantine
			}
			m.client.log.Warn("redlatch: node sits out", "node", m.name, "left", left, "reason", quarantineReason(reply.Value))
		}
		return
	}
	looked := op == node.OpAcquire || op == node.OpRepair
	if reply.Status == node.Granted && looked && m.sitting.Load() != 0 && m.client.clock.Uptime() >= time.Duration(m.sitting.Load()) && m.sitting.Swap(0) != 0 {
		m.client.log.Info("redlatch: node takes part again", "node", m.name)
	}
}
