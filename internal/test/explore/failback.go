package explore

import (
	"fmt"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// This file is the failover of the first server to a replica that lacks its last
// writes, and the failback: the server comes back as it was.

// keys are by which servers note each other's epochs.
var keys = [MaxServers]string{node.EpochKey("0"), node.EpochKey("1"), node.EpochKey("2"), node.EpochKey("3")}

func (m *machine) failover(s *State, i int, do doer) {
	srv := s.servers[i]
	switch {
	case i != 0 || s.old == 0:
	case s.saved[i] == nil:
		do(Step{Kind: Promote, Server: i}, func(s *State) {
			s.saved[i] = srv
			s.restarts++
			s.servers[i] = &nodestate.Server{ID: fmt.Sprint(s.restarts), Marker: srv.Marker, Silent: srv.Silent}
			m.markAgain(s, i)
			for c := range m.in.Clients {
				if m.in.Servers == 1 { // else they hear of it from the other servers
					s.epochs[c][i] = uint8(s.servers[i].Marker.Epoch)
				}
			}
		})
	default:
		do(Step{Kind: FailBack, Server: i}, func(s *State) {
			s.old--
			s.servers[i], s.saved[i] = s.saved[i], nil
		})
	}
	known := max(s.epochs[0][i], s.epochs[1][i])
	if uint64(known) > srv.Marker.Epoch {
		do(Step{Kind: MarkAgain, Server: i}, func(s *State) { m.markAgain(s, i) })
	}
}

// markAgain marks a server above what is known of it, and has the others note
// that.
func (m *machine) markAgain(s *State, i int) {
	known := max(s.epochs[0][i], s.epochs[1][i])
	req := node.Request{Op: node.OpMark, Mark: node.MarkWrite, Guard: m.guard[0], Epoch: uint64(known)}
	srv := s.own(i)
	srv.Apply(s.clockOf(i), req)
	req.Mark, req.Epoch, req.Epochs = node.MarkNote, 0, node.NewEpochs(map[string]uint64{keys[i]: srv.Marker.Epoch})
	for j := range m.in.Servers {
		if j != i {
			s.own(j).Apply(s.clockOf(j), req)
		}
	}
}

// learn has a client learn the epochs that a reply has.
func (m *machine) learn(s *State, msg *message, reply *node.Reply) {
	c := m.client(msg.claim)
	known := &s.epochs[c]
	known[msg.server] = max(known[msg.server], uint8(reply.Epoch))
	for j := range m.in.Servers {
		known[j] = max(known[j], uint8(reply.Epochs.Of(keys[j])))
	}
}
