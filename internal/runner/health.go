package runner

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// Health is what a client knows about one of its nodes, from the requests that
// it has sent. redlatch.NodeHealth describes the fields.
type Health struct {
	Node        string
	Up          bool
	Quarantined bool
	Reason      string
	Left        time.Duration
	Clock       time.Duration
	ClockKnown  bool
	WrongClock  bool
}

// Health returns what is known about each node. It sends no request.
func (c *Cluster) Health() []Health {
	all := make([]Health, len(c.members))
	for i, m := range c.members {
		all[i] = m.health()
	}
	return all
}

func (m *Member) health() Health {
	h := Health{
		Node:       m.name,
		Up:         m.identified.Load() && !m.failing.Load(),
		Clock:      time.Duration(m.offset.Load()),
		ClockKnown: m.offsetKnown.Load(),
		WrongClock: m.wrongClock.Load(),
	}
	var why string
	if why, h.Left, h.Quarantined = m.quarantine(); h.Quarantined {
		h.Reason = node.ReasonText(why)
	}
	return h
}

// changed reports that something is known about the node that was not before.
func (m *Member) changed() {
	if f := m.cluster.cfg.NodeChange; f != nil {
		f(m.health())
	}
}
