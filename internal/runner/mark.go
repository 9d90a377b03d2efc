package runner

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
func (mk *marking) start(c *Cluster, name string) {
	mk.mu.Lock()
	defer mk.mu.Unlock()
	if mk.flight != nil || c.clock.Uptime() < mk.idle && c.guard.parameters() == mk.idleOf || !c.background.start() {
		return
	}
	flight, asked := make(chan struct{}), c.guard.parameters()
	mk.flight = flight
	go func() {
		defer c.background.end()
		marked := c.markAgain(name)
		mk.mu.Lock()
		defer mk.mu.Unlock()
		mk.marked += marked
		if marked == 0 {
			mk.idle, mk.idleOf = c.clock.Uptime()+c.cfg.NodeTimeout, asked
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

// markAgain marks the nodes that protocol.ToMark names, and returns how many it
// marked.
func (c *Cluster) markAgain(name string) (marked int) {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit*c.cfg.NodeTimeout)
	states := c.adoptMarkersFor(ctx, name)
	cancel()
	seen := make([]protocol.Seen, len(states))
	for i, s := range states {
		seen[i] = protocol.Seen{Answered: s.Err == nil, Marked: s.Marked != nil, Outdated: protocol.Outdated(s.Marked, s.Trusted, s.Left, s.Reason)}
	}
	mark := protocol.ToMark(seen)
	var members []*Member
	var before []NodeState
	for i, s := range states {
		if mark.Has(i) {
			members, before = append(members, c.members[i]), append(before, s)
		}
	}
	if len(members) == 0 {
		return 0
	}
	ctx, cancel = context.WithTimeout(context.Background(), c.cfg.NodeTimeout)
	defer cancel()
	write := node.Request{Mark: node.MarkWrite, Name: name}
	for i, s := range c.markWithin(ctx, markTime*c.cfg.NodeTimeout, write, members, before) {
		if s.Err == nil && s.Left > 0 {
			marked++
			members[i].noteQuarantine(node.OpMark, node.Reply{Status: node.Quarantined, Value: s.Reason, Left: s.Left})
		}
	}
	return marked
}

// Quarantined returns the nodes that are known to be in quarantine.
func (c *Cluster) Quarantined() []node.Result {
	var out []node.Result
	for _, m := range c.members {
		until, now := time.Duration(m.sitting.Load()), c.clock.Uptime()
		why := m.sitsFor.Load()
		if why == nil || until == 0 || until != unmarkedYet && until <= now {
			continue
		}
		left := until - now
		if until == unmarkedYet {
			left = c.guard.parameters().Quarantine
		}
		out = append(out, node.Result{Node: m.name, Reply: node.Reply{Status: node.Quarantined, Value: *why, Left: left}})
	}
	return out
}

// unmarkedYet is until when a node is quarantined that is not marked: its
// quarantine has not begun.
const unmarkedYet time.Duration = 1

// noteQuarantine logs once when a node is quarantined, and once when it is back
// in service. Only what is granted after a look at the marker shows that it is.
func (m *Member) noteQuarantine(op node.Op, reply node.Reply) {
	if reply.Status == node.Quarantined || reply.NeedsMark() {
		until := max(m.cluster.clock.Uptime()+reply.Left, unmarkedYet+1)
		if reply.NeedsMark() {
			until = unmarkedYet
		}
		why := reply.Value // a copy, so that the reply need not be on the heap
		m.sitsFor.Store(&why)
		if before := m.sitting.Swap(int64(until)); before == 0 {
			left := reply.Left
			if reply.NeedsMark() {
				left = m.cluster.guard.parameters().Quarantine
			}
			m.cluster.log.Warn("redlatch: node sits out", "node", m.name, "left", left, "reason", node.ReasonText(reply.Value))
		}
		return
	}
	looked := op == node.OpAcquire || op == node.OpRepair
	if reply.Status == node.Granted && looked && m.sitting.Load() != 0 && m.cluster.clock.Uptime() >= time.Duration(m.sitting.Load()) && m.sitting.Swap(0) != 0 {
		m.cluster.log.Info("redlatch: node takes part again", "node", m.name)
	}
}
