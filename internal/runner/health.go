package runner

import (
	"time"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
	"github.com/redlatch/redlatch/observe"
)

// Health returns what is known about each node. It sends no request.
func (c *Cluster) Health() []observe.NodeHealth {
	all := make([]observe.NodeHealth, len(c.members))
	for i, m := range c.members {
		all[i] = m.health()
	}
	return all
}

func (m *Member) health() observe.NodeHealth {
	h := observe.NodeHealth{
		Node:       m.name,
		Up:         m.identified.Load() && !m.failing.Load(),
		Clock:      time.Duration(m.offset.Load()),
		ClockKnown: m.offsetKnown.Load(),
		WrongClock: m.wrongClock.Load(),
	}
	if n, ok := m.node.(node.Observing); ok {
		h.Timers = n.Timers()
	}
	if reply, ok := m.quarantine(); ok {
		h.Quarantined, h.Left, h.Reason = true, reply.Left, lockerrors.Reason(reply.Reason)
	}
	return h
}

// changed reports that something is known about the node that was not before.
func (m *Member) changed() {
	if o := m.cluster.cfg.Observer; o != nil {
		o.NodeChange(m.health())
	}
}

// observeEnd reports an answer of the node.
func (m *Member) observeEnd(op node.Op, r observe.Result, took time.Duration) {
	if o := m.cluster.cfg.Observer; o != nil {
		o.NodeEnd(observe.NodeEnd{Node: m.name, Op: op, Status: r.Reply.Status, Elapsed: took, Err: r.Err})
	}
}
