package nodestate

import (
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Server is what one server stores. The zero value is an empty one.
type Server struct {
	// ID identifies the server. It changes with every restart, like the
	// replication id of a Redis master.
	ID string

	// Marker is the marker of the restart guard.
	Marker Marker

	// Silent says that notifications are not delivered, so that waiters poll.
	Silent bool

	names map[string]*Entry
	// sweepAt is the number of names at which dead ones are removed.
	sweepAt int
}

// leastSweep is the number of names below which a sweep is not worth its cost.
const leastSweep = 64

// Check refuses a request that is not valid.
func Check(req node.Request) error {
	switch {
	case req.Op < node.OpAcquire || req.Op == node.OpMark || req.Op > node.OpBreak:
		return fmt.Errorf("operation %d is unknown", req.Op)
	case req.Token > node.MaxToken || req.Reserve > node.MaxToken-req.Token:
		return fmt.Errorf("token %d is above the largest, %d", uint64(req.Token), uint64(node.MaxToken))
	case req.TTL <= 0 && (req.Op == node.OpAcquire || req.Op == node.OpExtend || req.Op == node.OpRepair):
		return fmt.Errorf("TTL is %v: must be positive", req.TTL)
	}
	return req.Share.Check()
}

// Apply executes a request that has passed Check. It returns the reply and the
// notifications. Without a Guard in the request it ignores the marker.
func (s *Server) Apply(now time.Time, req node.Request) (node.Reply, []node.Wake) {
	e := s.entry(req.Name, now)
	reply, wakes := s.ApplyTo(e, now, req)
	s.store(req.Name, e, now)
	return reply, wakes
}

// ApplyTo executes a request for the name of an entry, which is stored elsewhere.
func (s *Server) ApplyTo(e *Entry, now time.Time, req node.Request) (node.Reply, []node.Wake) {
	if req.Guard != nil {
		if reply, refused := s.refuse(now, req, e); refused {
			return reply, nil
		}
	}
	if req.Reserve > 0 && req.Guard != nil {
		grant := req
		grant.Op = node.OpAcquire
		if _, refused := s.refuse(now, grant, e); refused {
			req.Reserve = 0 // what was forgotten here may include higher tokens
		}
	}
	reply, wakes := e.apply(now, req, !s.Silent)
	if req.Guard != nil && !req.Guard.Off && reply.Status == node.Granted {
		switch {
		case req.Op == node.OpAcquire:
			reply.Marker = node.Marker{Server: s.ID, Epoch: s.Marker.Epoch, Lineage: s.Marker.Lineage, Epochs: s.Marker.Epochs}
		case req.Op == node.OpExtend && (!s.Marker.by(s.ID) || s.Marker.Epoch < req.Epoch):
			reply.NeedsMark = true
		}
	}
	return reply, wakes
}

// Look returns what is known about one name.
func (s *Server) Look(now time.Time, name string) node.Listing {
	return s.entry(name, now).Look(name, now)
}

// List returns the names that begin with prefix and are held, waited for, or were
// broken, in no order.
func (s *Server) List(now time.Time, prefix string) []node.Listing {
	var all []node.Listing
	for name, e := range s.names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		e.Settle(now)
		if l := e.Listing(name, now); l.Waiting > 0 || l.Reply.Status == node.Held || l.Broken != 0 {
			all = append(all, l)
		}
	}
	return all
}

// Clone returns a copy that shares nothing with s.
func (s *Server) Clone() Server {
	c := *s
	c.names = make(map[string]*Entry, len(s.names))
	for name, e := range s.names {
		twin := e.Clone()
		c.names[name] = &twin
	}
	return c
}

// Restart restarts the server, with all its data or with none. It gets a new
// id.
func (s *Server) Restart(keepData bool, newID string) {
	if !keepData {
		s.Flush()
	}
	s.ID = newID
}

// Flush forgets everything, the marker included, without a restart.
func (s *Server) Flush() {
	s.Marker = Marker{}
	s.names, s.sweepAt = nil, 0
}

// Evict forgets a name's holder and fence, but not its queue, as a server does
// that is short of memory. It reports whether the name was held.
func (s *Server) Evict(now time.Time, name string) bool {
	e := s.names[name]
	if e == nil {
		return false
	}
	e.Settle(now)
	had := e.held()
	e.Holders = nil
	e.forgetFence()
	return had
}

// entry returns the entry of a name as of now. A new entry is kept only if
// store is called.
func (s *Server) entry(name string, now time.Time) *Entry {
	e := s.names[name]
	if e == nil {
		return &Entry{}
	}
	e.Settle(now)
	return e
}

// store stores the entry, or removes it if it is empty.
func (s *Server) store(name string, e *Entry, now time.Time) {
	if e.Dead() {
		delete(s.names, name)
		return
	}
	if s.names == nil {
		s.names = map[string]*Entry{}
	}
	s.names[name] = e
	if len(s.names) < max(s.sweepAt, leastSweep) {
		return
	}
	for name, e := range s.names {
		if e.Settle(now); e.Dead() {
			delete(s.names, name)
		}
	}
	// Twice the number of live names: dead names never outnumber live ones, and
	// each sweep is paid for by as many new names as it checks.
	s.sweepAt = 2 * len(s.names)
}

// Stored returns what is stored of a name, expired or not; nil for nothing. It
// is for looking at.
func (s *Server) Stored(name string) *Entry { return s.names[name] }
