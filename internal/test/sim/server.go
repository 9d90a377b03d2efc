package sim

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/node"
)

// Server is the model of a Redis server with redlatch's scripts: the state of a
// node, which is a plain value, and a connection by which it notifies waiters.
// TestModelAnswersAsARealServer of package nodestate compares it with real ones.
type Server struct {
	name  string
	clock func() time.Time

	mu     sync.Mutex // guards state, starts and virgin
	state  nodestate.Server
	starts int
	// virgin is set until the server is first in service: its first marker is
	// trusted at once, as after redlatch init --assume-fresh.
	virgin bool

	// freed has the tokens with which values were released, by name and value,
	// as far as the server still knows.
	freed map[[2]string]node.Token
	// ended are the names and values that the server was ever asked to release.
	ended map[[2]string]bool

	tell func(node.Wake)
	// broken is called with every step that no server may make.
	broken func(what string)
}

// NewServer returns a server that is marked and trusted at the first request if
// fresh is set, and quarantined otherwise.
func NewServer(name string, clock func() time.Time, fresh bool) *Server {
	s := &Server{name: name, clock: clock, virgin: fresh, freed: map[[2]string]node.Token{}, ended: map[[2]string]bool{}, tell: func(node.Wake) {}, broken: func(string) {}}
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

// change changes what the server has other than by a request.
func (s *Server) change(f func(*nodestate.Server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freed = map[[2]string]node.Token{}
	f(&s.state)
}

// restart restarts the server from the data on its disk.
func (s *Server) restart(disk nodestate.Server) {
	s.change(func(state *nodestate.Server) {
		*state = disk
		state.Restart(true, s.nextID())
	})
}

// restartEmpty restarts the server without its data.
func (s *Server) restartEmpty() {
	s.change(func(state *nodestate.Server) {
		s.virgin = false
		state.Restart(false, s.nextID())
	})
}

// flush forgets everything, without a restart.
func (s *Server) flush() {
	s.change(func(state *nodestate.Server) {
		s.virgin = false
		state.Flush()
	})
}

// holders returns those that have the name, or a part of it.
func (s *Server) holders(name string) []node.Holder {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(name).holders
}

// sight is what a server has of a name.
type sight struct {
	holders      []node.Holder
	fence, floor node.Token
}

func (s *Server) look(name string) sight {
	l := s.state.Look(s.clock(), name)
	v := sight{holders: l.Holders, fence: l.Reply.Fence}
	if e := s.state.Stored(name); e != nil {
		v.floor = e.Floor
	}
	return v
}

// of returns the holder of a value; nil if there is none.
func (v *sight) of(value string) *node.Holder {
	if i := slices.IndexFunc(v.holders, func(h node.Holder) bool { return h.Value == value }); i >= 0 {
		return &v.holders[i]
	}
	return nil
}

// firstSight marks a server that was never in service, and makes it trusted.
func (s *Server) firstSight(g *node.Guard) {
	if s.virgin && !g.Off && s.state.Marker == (nodestate.Marker{}) {
		s.virgin = false
		first := *g
		first.Generation = max(first.Generation, 1)
		s.state.Marker = nodestate.Marker{ID: s.state.ID, Guard: first, TrustedFrom: s.clock(), Reason: node.ReasonNew, Epoch: 1, Lineage: s.state.ID}
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

// Mark reads or writes the marker.
func (s *Server) Mark(req node.MarkRequest) (node.MarkReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := nodestate.CheckMark(req); err != nil {
		return node.MarkReply{}, fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	s.firstSight(req.Guard)
	return s.state.Mark(s.clock(), req), nil
}

// check reports a state of the server that no schedule may lead to.
func (s *Server) check(req node.Request, before sight, reply node.Reply) {
	after := s.look(req.Name)
	broken := func(format string, args ...any) { s.broken(fmt.Sprintf(format, args...) + " on " + s.name) }
	for _, was := range before.holders {
		is := after.of(was.Value)
		switch {
		case was.Value == req.Value || req.Op == node.OpBreak:
		case is == nil && (req.Op == node.OpRelease || req.Op == node.OpYield):
			broken("a release by %s has freed the lock of %s", req.Value, was.Value)
		case is == nil:
			broken("the lock was taken from %s", was.Value)
		case is.Share != was.Share || !is.Until.Equal(was.Until):
			broken("a request of %s has changed the lock of %s", req.Value, was.Value)
		}
	}
	was, is := before.of(req.Value), after.of(req.Value)
	switch req.Op {
	case node.OpExtend:
		switch {
		case was == nil && is != nil:
			broken("an extension has made %s a holder", req.Value)
		case was != nil && is == nil:
			broken("an extension has removed %s", req.Value)
		case was != nil && is.Share != was.Share && !(was.Mode == node.Exclusive && is.Mode == node.Shared):
			broken("an extension has made the %v of %s the %v", was.Share, req.Value, is.Share)
		case was != nil && reply.Status == node.Granted && is.Share != req.Share:
			broken("an extension of the %v was granted, and %s has the %v", req.Share, req.Value, is.Share)
		}
	case node.OpAcquire:
		if was == nil && is != nil && req.Token != 0 {
			s.checkToken(req, before, broken)
		}
		if was != nil && is != nil && is.Token < was.Token && req.Token != 0 {
			broken("a late proposal of %s has taken the place of a later one", req.Value)
		}
		if was != nil && is != nil && was.Mode == node.Shared && is.Mode != node.Shared {
			broken("the reader %s was made a writer", req.Value)
		}
	}
	for i, a := range after.holders {
		for _, b := range after.holders[:i] {
			if exclusion.Conflict(a.Share, b.Share) {
				broken("%s has the %v beside %s with the %v", a.Value, a.Share, b.Value, b.Share)
			}
		}
	}
	if req.Op == node.OpRelease {
		s.ended[[2]string{req.Name, req.Value}] = true
	}
	if req.Op == node.OpRepair && reply.Status == node.Stale && !reply.Now.After(req.Until) && !s.ended[[2]string{req.Name, req.Value}] {
		broken("%s was refused its repair with token %v, under the fence %v, and was never released", req.Value, req.Token, before.fence)
	}
	if req.Op == node.OpRelease && after.fence >= req.Token && !req.Once {
		s.freed[[2]string{req.Name, req.Value}] = req.Token
	}
	if after.fence < before.fence {
		broken("the fence went back from %v to %v", before.fence, after.fence)
	}
	if after.floor < before.floor {
		broken("the floor went back from %v to %v", before.floor, after.floor)
	}
	if after.floor > after.fence {
		broken("the floor %v is above the fence %v", after.floor, after.fence)
	}
	if reply.Status == node.Granted && req.Op == node.OpAcquire && (is == nil || is.Mode != req.Mode || is.Slots != req.Slots) {
		broken("a grant left no key")
	}
}

// checkToken reports a new holder whose token does not allow it.
func (s *Server) checkToken(req node.Request, before sight, broken func(string, ...any)) {
	switch freed := s.freed[[2]string{req.Name, req.Value}]; {
	case req.Mode != node.Shared && req.Token <= before.fence:
		broken("the %v was given to %s with token %v, and the fence was at %v", req.Share, req.Value, req.Token, before.fence)
	case req.Token <= before.floor:
		broken("the %v was given to %s with token %v, and the floor was at %v", req.Share, req.Value, req.Token, before.floor)
	case req.Token <= freed && req.Token <= before.fence:
		broken("the %v was given to %s with token %v, after its release with %v", req.Share, req.Value, req.Token, freed)
	}
}
