package runner

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
	"github.com/redlatch/redlatch/observe"
)

// This file brings nodes back into service that have lost their marker, or
// whose marker is from before a restart. A node reports this to who acquires, extends
// or repairs there, and writes nothing. Then a separate request, in the
// background, writes the marker. The quarantine begins with that write.

// marking marks nodes for a client. One marking is in flight at a time.
type marking struct {
	mu     sync.Mutex
	flight chan struct{} // closed when the marking in flight is over; nil if there is none
	marked int           // how many times a node was marked
	// idle is the time, on the client's clock, before which no other marking
	// begins, because the last one found no node that it may mark with these
	// parameters.
	idle   time.Duration
	idleOf *node.Guard
}

// start marks nodes in the background. name is the lock whose request noticed
// that this is needed: in a cluster each slot has a marker.
func (mk *marking) start(c *Cluster, name string) {
	mk.mu.Lock()
	defer mk.mu.Unlock()
	if mk.flight != nil || c.clock.Uptime() < mk.idle && c.guard.parameters() == mk.idleOf || !c.background.start() {
		return
	}
	flight, sentWith := make(chan struct{}), c.guard.parameters()
	mk.flight = flight
	go func() {
		defer c.background.end()
		marked := c.markAgain(name)
		mk.mu.Lock()
		defer mk.mu.Unlock()
		mk.marked += marked
		if marked == 0 {
			mk.idle, mk.idleOf = c.clock.Uptime()+c.cfg.NodeTimeout, sentWith
		}
		mk.flight = nil
		close(flight)
	}()
}

// count returns how many times a node was marked so far, and the marking in
// flight.
func (mk *marking) count() (int, chan struct{}) {
	mk.mu.Lock()
	defer mk.mu.Unlock()
	return mk.marked, mk.flight
}

// await waits for the marking in flight, if there is one. It reports whether a
// node was marked since the count was since.
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
// they are read twice if they have parameters that the caller did not set.
// markTime is how many it may take until a node is marked.
const (
	readLimit = 2
	markTime  = readLimit + 1
)

// markAgain marks the nodes that have to be marked, and returns how many it
// marked.
func (c *Cluster) markAgain(name string) (marked int) {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit*c.cfg.NodeTimeout)
	states := c.AdoptMarkers(ctx, name)
	cancel()
	ctx, cancel = context.WithTimeout(context.Background(), c.cfg.NodeTimeout)
	defer cancel()
	after, sent := c.markNeeded(ctx, markTime*c.cfg.NodeTimeout, name, states)
	for i, s := range after {
		if s.Err == nil && s.Left > 0 && sent.Has(i) {
			marked++
			c.members[i].noteQuarantine(node.OpMark, node.Reply{Status: node.Quarantined, Marker: node.Marker{Reason: s.Reason}, Left: s.Left})
		}
	}
	return marked
}

// Quarantined returns the nodes that are known to be out of service: in quarantine, or
// still to be marked.
func (c *Cluster) Quarantined() []observe.Result {
	var out []observe.Result
	for _, m := range c.members {
		if reply, ok := m.quarantine(); ok {
			out = append(out, observe.Result{Node: m.name, Reply: reply})
		}
	}
	return out
}

// quarantine is why a node is out of service, and until when, on the client's clock.
// The end is absent while the node has to be marked: its quarantine has not begun.
type quarantine struct {
	quarantineEnd    protocol.When
	quarantineReason string
}

// ends reports whether a grant shows that the node is back in service: the quarantine
// is over, or the node had still to be marked, and another client did that.
func (q *quarantine) ends(now time.Duration) bool {
	return !q.quarantineEnd.IsSet() || q.quarantineEnd.Reached(now)
}

// inQuarantine reports whether the node is known to grant nothing before its
// quarantine ends. One that has to be marked first is not in it.
func (m *Member) inQuarantine(now time.Duration) bool {
	q := m.quarantined.Load()
	return q != nil && !q.ends(now)
}

// quarantine returns what the node answers while it is out of service; false if it is
// not, as far as is known.
func (m *Member) quarantine() (reply node.Reply, ok bool) {
	q, now := m.quarantined.Load(), m.cluster.clock.Uptime()
	if q == nil || q.quarantineEnd.Reached(now) {
		return reply, false
	}
	reply = node.Reply{Status: node.Quarantined, Marker: node.Marker{Reason: q.quarantineReason, NeedsMark: !q.quarantineEnd.IsSet()}}
	if reply.Left = q.quarantineEnd.Or(now) - now; reply.NeedsMark {
		reply.Left = m.cluster.guard.parameters().Quarantine
	}
	return reply, true
}

// noteQuarantine logs when a node is out of service, and when it is back in
// service, once each, and reports whether that has changed. Only a grant after a
// check of the marker shows that it is back.
func (m *Member) noteQuarantine(op node.Op, reply node.Reply) (changed bool) {
	if reply.Status == node.Quarantined || reply.NeedsMark {
		q, left := &quarantine{quarantineReason: reply.Reason}, reply.Left
		if reply.NeedsMark {
			left = m.cluster.guard.parameters().Quarantine
		} else {
			q.quarantineEnd = protocol.At(m.cluster.clock.Uptime() + reply.Left)
		}
		if m.quarantined.Swap(q) != nil {
			return false
		}
		m.cluster.say(slog.LevelWarn, "redlatch: node is quarantined", "node", m.name, "left", left, "reason", lockerrors.Reason(reply.Reason))
		return true
	}
	if reply.Status != node.Granted || op != node.OpAcquire && op != node.OpRepair {
		return false
	}
	if q := m.quarantined.Load(); q != nil && q.ends(m.cluster.clock.Uptime()) && m.quarantined.CompareAndSwap(q, nil) {
		m.cluster.say(slog.LevelInfo, "redlatch: node is back in service", "node", m.name)
		return true
	}
	return false
}
