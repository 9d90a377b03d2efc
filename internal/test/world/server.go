package world

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// Server is one server: the state of a real node, its clock and its faults.
type Server struct {
	Number int // from 1 on

	w      *World
	state  nodestate.Server
	starts int
	skew   time.Duration // how far its clock is ahead
	down   bool
}

// newServer returns a server that is in service.
func newServer(w *World, i int) *Server {
	s := &Server{Number: i + 1, w: w}
	s.state.ID = s.nextID()
	if g := w.guard; !g.Off {
		s.state.Mark(s.clock(), node.MarkRequest{Mark: node.MarkFresh, Guard: &g})
	}
	return s
}

func (s *Server) nextID() string {
	s.starts++
	return fmt.Sprintf("%d/%d", s.Number, s.starts)
}

func (s *Server) clock() time.Time { return s.w.clock().Add(s.skew) }

// Stop stops the server.
func (s *Server) Stop() {
	if !s.down {
		s.down = true
		s.w.say("fault", "Server %d stops", s.Number)
	}
}

// Start starts the server again, with its data.
func (s *Server) Start() {
	if !s.down {
		return
	}
	s.w.say("fault", "Server %d is back, with its data", s.Number)
	s.restart(true)
}

// RestartEmpty restarts the server without its data.
func (s *Server) RestartEmpty() {
	s.w.say("fault", "Server %d restarts empty: it has forgotten every lock", s.Number)
	if s.w.guard.Off {
		s.w.leave("a server forgot its locks, and the restart guard is off")
	}
	s.restart(false)
}

func (s *Server) restart(keep bool) {
	s.down = false
	s.state.Restart(keep, s.nextID())
	for _, c := range s.w.Clients {
		c.reconnected(s.Number - 1)
	}
}

// Skew sets the clock of the server.
func (s *Server) Skew(by time.Duration) {
	s.skew += by
	s.w.say("fault", "The clock of server %d is set by %+.0f s", s.Number, by.Seconds())
	if by > 0 {
		// Its keys expire too early, as if it had forgotten them.
		s.w.leave("the clock of a server was set forward")
	}
}

// apply executes a request, and sends the notifications.
func (s *Server) apply(req node.Request) node.Reply {
	reply, wakes := s.state.Apply(s.clock(), req)
	for _, wake := range wakes {
		for _, c := range s.w.Clients {
			if cl := c.claimOf(wake.Value); cl != nil {
				c.notify(s.Number-1, cl, wake)
			}
		}
	}
	return reply
}

// look is what the server stores of the lock. It changes nothing.
func (s *Server) look() node.Listing {
	state := s.state.Clone()
	return state.Look(s.clock(), Name)
}

// quarantine is how long the server will not grant; negative if it has to be
// marked first.
func (s *Server) quarantine() (left time.Duration, out bool) {
	if s.w.guard.Off {
		return 0, false
	}
	switch m := s.state.Marker; {
	case m.ID != s.state.ID:
		return -1, true
	case m.TrustedFrom.After(s.clock()):
		return m.TrustedFrom.Sub(s.clock()), true
	}
	return 0, false
}
