package sim

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/memory"
	"github.com/redlatch/redlatch/node"
)

// Server is the model of a Redis server with redlatch's scripts: the data of a
// node in memory, which queues and judges tokens just so, and the marker of
// the restart guard. That it answers as a real server does is shown by
// TestModelAnswersAsARealServer.
type Server struct {
	name  string
	clock func() time.Time

	mu     sync.Mutex
	data   *memory.Node
	marker *marker
	// id is the replication id: another one after every start.
	id int
	// virgin is set before the server was first in service: its first marker
	// is trusted at once, as after redlatch init --assume-fresh.
	virgin bool
	tell   func(node.Wake)
	// broken is told of every step that no server may take.
	broken func(what string)
}

// NewServer returns a server that is marked at first sight if fresh is set, and
// sits out otherwise.
func NewServer(name string, clock func() time.Time, fresh bool) *Server {
	s := &Server{name: name, clock: clock, id: 1, virgin: fresh, tell: func(node.Wake) {}, broken: func(string) {}}
	s.load(memory.New(memory.Options{Name: name, Clock: clock}))
	return s
}

// load has the server work on some data from now on. The mutex is held, or
// nobody knows the server yet.
func (s *Server) load(data *memory.Node) {
	s.data = data
	data.Listen(func(w node.Wake) { s.tell(w) })
}

// image is what a server has on its disk.
type image struct {
	data   *memory.Node
	marker *marker
}

// save returns what is there now.
func (s *Server) save() image {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := image{data: s.data.Copy()}
	if s.marker != nil {
		m := *s.marker
		i.marker = &m
	}
	return i
}

// restart starts the server anew from what it has on disk.
func (s *Server) restart(i image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id++
	s.marker = i.marker
	s.load(i.data)
}

// flush forgets everything, without a restart.
func (s *Server) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marker, s.virgin = nil, false
	s.load(memory.New(memory.Options{Name: s.name, Clock: s.clock}))
}

func (s *Server) empty() image {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.virgin = false
	return image{data: memory.New(memory.Options{Name: s.name, Clock: s.clock})}
}

// evict forgets a name, and nothing shows it.
func (s *Server) evict(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data.Drop(name)
}

// holder returns the value that has the name; "" for none.
func (s *Server) holder(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(name).Value
}

func (s *Server) look(name string) node.Reply {
	r, _ := s.data.Do(context.Background(), node.Request{Op: node.OpInspect, Name: name})
	return r
}

// Do carries out a request.
func (s *Server) Do(req node.Request) (node.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var server string
	if req.Guard != nil {
		s.firstSight(req.Guard)
		if req.Op == node.OpMark {
			return s.mark(req)
		}
		if reply, refused := s.guard(req); refused {
			return reply, nil
		}
		if !req.Guard.Off {
			server = strconv.Itoa(s.id)
		}
	}
	before := s.look(req.Name)
	reply, err := s.data.Do(context.Background(), req)
	if err != nil {
		return reply, err
	}
	if reply.Status == node.Granted && req.Op == node.OpAcquire {
		reply.Server = s.name + "/" + server
		if server == "" {
			reply.Server = ""
		}
	}
	if reply.Status == node.Granted && req.Op == node.OpExtend && server != "" && (s.marker == nil || s.marker.id != s.id) {
		reply.Value = node.ReasonRemark
	}
	s.check(req, before, reply)
	return reply, nil
}

// check says whether what the server did is what no schedule may lead to.
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
