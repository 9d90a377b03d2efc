package sim

import (
	"fmt"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// Server is the model of a Redis server with redlatch's scripts: the state of a
// node, which is a plain value, and a connection by which it notifies waiters.
// That it answers as a real server does is shown by
// TestModelAnswersAsARealServer.
type Server struct {
	name  string
	clock func() time.Time

	mu     sync.Mutex // guards state, starts and virgin
	state  nodestate.Server
	starts int
	// virgin is set until the server is first in service: its first marker is
	// trusted at once, as after redlatch init --assume-fresh.
	virgin bool

	tell func(node.Wake)
	// broken is called with every step that no server may make.
	broken func(what string)
}

// NewServer returns a server that is marked and trusted at the first request if
// fresh is set, and quarantined otherwise.
func NewServer(name string, clock func() time.Time, fresh bool) *Server {
	s := &Server{name: name, clock: clock, virgin: fresh, tell: func(node.Wake) {}, broken: func(string) {}}
	s.state.ID = s.nextID()
	return s
}

// nextID returns the replication id of another start.
func (s *Server) nextID() string {
	s.starts++
	return fmt.Sprintf("%s/%d", s.name, s.starts)
}

// save returns what is on the server's disk now.
func (s *Server) save() nodestate.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Clone()
}

// restart restarts the server from the data on its disk.
func (s *Server) restart(disk nodestate.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = disk
	s.state.Restart(true, s.nextID())
}

// restartEmpty restarts the server without its data.
func (s *Server) restartEmpty() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.virgin = false
	s.state.Restart(false, s.nextID())
}

// flush forgets everything, without a restart.
func (s *Server) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.virgin = false
	s.state.Flush()
}

// evict forgets a name, and nothing shows it.
func (s *Server) evict(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Evict(s.clock(), name)
}

// holder returns the value that has the name; "" for none.
func (s *Server) holder(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(name).Value
}

func (s *Server) look(name string) node.Reply { return s.state.Look(s.clock(), name).Reply }

// firstSight marks a server that was never in service, and makes it trusted.
func (s *Server) firstSight(g *node.Guard) {
	if s.virgin && !g.Off && s.state.Marker == (nodestate.Marker{}) {
		s.virgin = false
		s.state.Marker = nodestate.Marker{ID: s.state.ID, Guard: *g, TrustedFrom: s.clock(), Reason: node.ReasonNew}
	}
}

// Do executes a request.
func (s *Server) Do(req node.Request) (node.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := nodestate.Check(req); err != nil {
		return node.Reply{}, fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	if req.Guard != nil {
		s.firstSight(req.Guard)
	}
	before := s.look(req.Name)
	reply, wakes := s.state.Apply(s.clock(), req)
	for _, w := range wakes {
		s.tell(w)
	}
	s.check(req, before, reply)
	return reply, nil
}

// check reports a state of the server that no schedule may lead to.
func (s *Server) check(req node.Request, before, reply node.Reply) {
	after := s.look(req.Name)
	switch req.Op {
	case node.OpExtend:
		if before.Value != after.Value {
			s.broken("an extension has made " + after.Value + " the holder on " + s.name)
		}
	case node.OpAcquire, node.OpRepair:
		if before.Value != "" && after.Value != before.Value {
			s.broken("the lock was taken from " + before.Value + " on " + s.name)
		}
	case node.OpRelease, node.OpOffer:
		if before.Value != req.Value && after.Value != before.Value {
			s.broken("a release by " + req.Value + " has freed the lock of " + before.Value + " on " + s.name)
		}
	}
	if after.Fence < before.Fence {
		s.broken("the fence went back from " + before.Fence.String() + " to " + after.Fence.String() + " on " + s.name)
	}
	if reply.Status == node.Granted && req.Op == node.OpAcquire && after.Value != req.Value {
		s.broken("a grant on " + s.name + " left no key")
	}
}
