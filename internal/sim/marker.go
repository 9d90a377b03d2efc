package sim

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/node"
)

// marker is the key by which a server knows that it has forgotten nothing; see
// redis/lua/marker.lua and guard.lua, of which this is the model.
type marker struct {
	id      int // the replication id of the server that wrote it
	guard   node.Guard
	trusted time.Time
	reason  string
}

// agrees reports whether a client goes by the same list and bounds.
func (m *marker) agrees(g *node.Guard) bool {
	return m.guard.List == g.List && m.guard.MaxTTL == g.MaxTTL && m.guard.Window == g.Window && m.guard.Quarantine == g.Quarantine &&
		m.guard.Replicas == g.Replicas && m.guard.ReplicaLag == g.ReplicaLag
}

// firstSight has a server that was never in service be marked, and trusted.
func (s *Server) firstSight(g *node.Guard) {
	if s.marker == nil && s.virgin && !g.Off {
		s.virgin = false
		s.marker = &marker{id: s.id, guard: *g, trusted: s.clock(), reason: node.ReasonNew}
	}
}

// setBack reports whether the clock was set back since the server was marked.
func (m *marker) setBack(now time.Time) bool {
	return m.reason != node.ReasonList && m.trusted.Sub(now) > m.guard.Quarantine
}

// another is the answer of a server that is marked for another list.
func (s *Server) another() node.Reply {
	theirs := s.marker.guard
	return node.Reply{Status: node.Misconfigured, Guard: &theirs, Now: s.clock()}
}

// sits is the answer of a server that does not grant.
func (s *Server) sits(reason string, left time.Duration) node.Reply {
	ms := (left + time.Millisecond - 1).Truncate(time.Millisecond)
	return node.Reply{Status: node.Quarantined, Value: reason, Left: ms, Now: s.clock()}
}

// guard says whether the server may carry out a request, and what it answers if
// not.
func (s *Server) guard(req node.Request) (reply node.Reply, refused bool) {
	g, now, m := req.Guard, s.clock(), s.marker
	tooLong := m != nil && req.TTL > m.guard.MaxTTL
	switch req.Op {
	case node.OpExtend, node.OpBreak:
		// What is ours already may be extended by whoever has the same list. A
		// key that is not there is no matter of the marker.
		if m != nil && (m.guard.List != g.List || req.Op == node.OpExtend && tooLong) && (req.Op == node.OpBreak || s.look(req.Name).Value == req.Value) {
			return s.another(), true
		}
		return node.Reply{}, false
	case node.OpAcquire, node.OpRepair:
	default:
		return node.Reply{}, false
	}
	switch {
	case g.Off && (m == nil || m.guard.List == g.List && !tooLong):
		return node.Reply{}, false
	case g.Off:
		return s.another(), true
	case m == nil:
		return s.sits(node.ReasonUnmarked, g.Quarantine), true
	case !m.agrees(g):
		return s.another(), true
	case m.id != s.id || m.setBack(now):
		return s.sits(node.ReasonRemark, m.guard.Quarantine), true
	case m.trusted.After(now):
		return s.sits(m.reason, m.trusted.Sub(now)), true
	}
	return node.Reply{}, false
}

// mark reads or writes the marker; see redis/lua/mark.lua. The model knows what
// clients do by themselves: MarkRead and MarkWrite.
func (s *Server) mark(req node.Request) (node.Reply, error) {
	g, now, m := req.Guard, s.clock(), s.marker
	left := g.Quarantine
	write := func(reason string, trusted time.Time) node.Reply {
		s.marker = &marker{id: s.id, guard: *g, trusted: trusted, reason: reason}
		r := s.sits(reason, trusted.Sub(now))
		r.Guard = g
		return r
	}
	switch {
	case req.Mark != node.MarkRead && req.Mark != node.MarkWrite:
		return node.Reply{}, fmt.Errorf("the model does not know mark %d (%w)", req.Mark, node.ErrUnsent)
	case !req.Until.IsZero() && now.After(req.Until):
		return node.Reply{Status: node.Stale, Now: now}, nil
	case m == nil && req.Mark == node.MarkRead:
		return node.Reply{Status: node.Absent, Now: now}, nil
	case m == nil:
		return write(node.ReasonNew, now.Add(left)), nil
	case !m.agrees(g):
		return s.another(), nil
	}
	theirs := m.guard
	switch {
	case m.id != s.id && req.Mark == node.MarkRead:
		return node.Reply{Status: node.Absent, Value: m.reason, Guard: &theirs, Now: now}, nil
	case m.id != s.id && m.reason == node.ReasonList && m.trusted.After(now.Add(left)):
		return write(m.reason, m.trusted), nil
	case m.id != s.id:
		return write(node.ReasonChanged, now.Add(left)), nil
	case m.setBack(now) && req.Mark == node.MarkWrite:
		return write(m.reason, now.Add(left)), nil
	case now.Before(m.trusted):
		r := s.sits(m.reason, m.trusted.Sub(now))
		r.Guard = &theirs
		return r, nil
	}
	return node.Reply{Status: node.Granted, Value: m.reason, Guard: &theirs, Now: now}, nil
}
