package explore

import (
	"fmt"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file is the failover of the first server to a replica that lacks its last
// writes, or to an empty server, and the failback: the server comes back as it was.

func (m *machine) failover(s *State, i int, do doer) {
	srv := s.servers[i]
	switch {
	case i != 0 || s.old == 0:
	case s.saved[i] == nil:
		do(Step{Kind: Promote, Server: i}, func(s *State) {
			s.saved[i] = srv
			s.restarts++
			s.servers[i] = &nodestate.Server{ID: fmt.Sprint(s.restarts), Silent: srv.Silent}
			if !m.in.Replaced {
				s.servers[i].Marker = srv.Marker
			}
			m.markAgain(s, i)
			for c := range m.in.Clients {
				if m.in.Servers == 1 { // else they hear of it from the other servers
					k := &s.servers[i].Marker
					s.learn(c, i, protocol.Shown{Epoch: k.Epoch, Lineage: k.Lineage, Epochs: k.Epochs})
				}
			}
		})
	default:
		do(Step{Kind: FailBack, Server: i}, func(s *State) {
			s.old--
			s.servers[i], s.saved[i] = s.saved[i], nil
		})
	}
	if max(s.epoch(0, i), s.epoch(1, i)) > srv.Marker.Epoch {
		do(Step{Kind: MarkAgain, Server: i}, func(s *State) { m.markAgain(s, i) })
	}
}

// markAgain marks a server, and has the others note that before. Who does it knows
// what the servers have noted, and what both clients know.
func (m *machine) markAgain(s *State, i int) {
	known := s.epochs[0].Merge(s.epochs[1])
	seen := make([]protocol.Seen, m.in.Servers)
	for j := range seen {
		k := &s.servers[j].Marker
		known = known.Merge(k.Epochs)
		seen[j] = protocol.Seen{Lineage: k.Lineage, Epoch: max(k.Epoch, s.epoch(0, j), s.epoch(1, j))}
	}
	drawn := fmt.Sprintf("%08x", 0x100+int(s.restarts))
	lineages, epochs := protocol.Lineages(seen, protocol.Of(i), known, func() string { return drawn })
	for j := range seen {
		req, lineage := node.MarkRequest{Mark: node.MarkNote, Guard: m.guard[0]}, ""
		if j == i {
			req.Mark, lineage = node.MarkWrite, lineages[i]
		}
		s.own(j).Mark(s.clockOf(j), protocol.MarkWith(req, lineage, epochs, 0, true))
	}
}

// epoch is the highest epoch of a server that a client knows of.
func (s *State) epoch(c, i int) uint64 {
	if s.lineages[c][i] == "" {
		return 0
	}
	return s.epochs[c].Of(s.lineages[c][i])
}

// learn tells a client what a server's marker says.
func (s *State) learn(c, i int, shown protocol.Shown) {
	if shown.Epoch > 0 {
		s.lineages[c][i], s.epochs[c] = shown.Lineage, shown.AddTo(s.epochs[c])
	}
}
