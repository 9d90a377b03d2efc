package sim

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch"
)

// marker is the key by which a server knows that it has forgotten nothing; see
// redis/lua/marker.lua and guard.lua, of which this is the model.
type marker struct {
	id      int // the replication id of the server that wrote it
	guard   redlatch.Guard
	trusted time.Time
	reason  string
}

// agrees reports whether a client goes by the same list and bounds.
func (m *marker) agrees(g *redlatch.Guard) bool {
	return m.guard.List == g.List && m.guard.MaxTTL == g.MaxTTL && m.guard.Window == g.Window && m.guard.Quarantine == g.Quarantine &&
		m.guard.Replicas == g.Replicas && m.guard.ReplicaLag == g.ReplicaLag
}

// firstSight has a server that was never in service be marked, and trusted.
func (s *Server) firstSight(g *redlatch.Guard) {
	if s.marker == nil && s.virgin && !g.Off {
		s.virgin = false
		s.marker = &marker{id: s.id, guard: *g, trusted: s.clock(), reason: redlatch.ReasonNew}
	}
}

// setBack reports whether the clock was set back since the server was marked.
func (m *marker) setBack(now time.Time) bool {
	return m.reason != redlatch.ReasonList && m.trusted.Sub(now) > m.guard.Quarantine
}

// another is the answer of a server that is marked for another list.
func (s *Server) another() redlatch.Reply {
	theirs := s.marker.guard
	return redlatch.Reply{Status: redlatch.Misconfigured, Guard: &theirs, Now: s.clock()}
}

// sits is the answer of a server that does not grant.
func (s *Server) sits(reason string, left time.Duration) redlatch.Reply {
	ms := (left + time.Millisecond - 1).Truncate(time.Millisecond)
	return redlatch.Reply{Status: redlatch.Quarantined, Value: reason, Left: ms, Now: s.clock()}
}

// guard says whether the server may carry out a request, and what it answers if
// not.
func (s *Server) guard(req redlatch.Request) (reply redlatch.Reply, refused bool) {
	g, now, m := req.Guard, s.clock(), s.marker
	tooLong := m != nil && req.TTL > m.guard.MaxTTL
	switch req.Op {
	case redlatch.OpExtend, redlatch.OpBreak:
		// What is ours already may be extended by whoever has the same list. A
		// key that is not there is no matter of the marker.
		if m != nil && (m.guard.List != g.List || req.Op == redlatch.OpExtend && tooLong) && (req.Op == redlatch.OpBreak || s.look(req.Name).Value == req.Value) {
			return s.another(), true
		}
		return redlatch.Reply{}, false
	case redlatch.OpAcquire, redlatch.OpRepair:
	default:
		return redlatch.Reply{}, false
	}
	switch {
	case g.Off && (m == nil || m.guard.List == g.List && !tooLong):
		return redlatch.Reply{}, false
	case g.Off:
		return s.another(), true
	case m == nil:
		return s.sits(redlatch.ReasonUnmarked, g.Quarantine), true
	case !m.agrees(g):
		return s.another(), true
	case m.id != s.id || m.setBack(now):
		return s.sits(redlatch.ReasonRemark, m.guard.Quarantine), true
	case m.trusted.After(now):
		return s.sits(m.reason, m.trusted.Sub(now)), true
	}
	return redlatch.Reply{}, false
}

// mark reads or writes the marker; see redis/lua/mark.lua. The model knows what
// clients do by themselves: MarkRead and MarkWrite.
func (s *Server) mark(req redlatch.Request) (redlatch.Reply, error) {
	g, now, m := req.Guard, s.clock(), s.marker
	left := g.Quarantine
	write := func(reason string, trusted time.Time) redlatch.Reply {
		s.marker = &marker{id: s.id, guard: *g, trusted: trusted, reason: reason}
		r := s.sits(reason, trusted.Sub(now))
		r.Guard = g
		return r
	}
	switch {
	case req.Mark != redlatch.MarkRead && req.Mark != redlatch.MarkWrite:
		return redlatch.Reply{}, fmt.Errorf("the model does not know mark %d (%w)", req.Mark, redlatch.ErrUnsent)
	case !req.Until.IsZero() && now.After(req.Until):
		return redlatch.Reply{Status: redlatch.Stale, Now: now}, nil
	case m == nil && req.Mark == redlatch.MarkRead:
		return redlatch.Reply{Status: redlatch.Absent, Now: now}, nil
	case m == nil:
		return write(redlatch.ReasonNew, now.Add(left)), nil
	case !m.agrees(g):
		return s.another(), nil
	}
	theirs := m.guard
	switch {
	case m.id != s.id && req.Mark == redlatch.MarkRead:
		return redlatch.Reply{Status: redlatch.Absent, Value: m.reason, Guard: &theirs, Now: now}, nil
	case m.id != s.id && m.reason == redlatch.ReasonList && m.trusted.After(now.Add(left)):
		return write(m.reason, m.trusted), nil
	case m.id != s.id:
		return write(redlatch.ReasonChanged, now.Add(left)), nil
	case m.setBack(now) && req.Mark == redlatch.MarkWrite:
		return write(m.reason, now.Add(left)), nil
	case now.Before(m.trusted):
		r := s.sits(m.reason, m.trusted.Sub(now))
		r.Guard = &theirs
		return r, nil
	}
	return redlatch.Reply{Status: redlatch.Granted, Value: m.reason, Guard: &theirs, Now: now}, nil
}
