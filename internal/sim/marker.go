package sim

import (
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

// guard says whether the server may carry out a request, and what it answers if
// not.
func (s *Server) guard(req redlatch.Request, mark bool) (redlatch.Reply, bool) {
	g, now := req.Guard, s.clock()
	sits := func(reason string, left time.Duration) (redlatch.Reply, bool) {
		ms := (left + time.Millisecond - 1).Truncate(time.Millisecond)
		return redlatch.Reply{Status: redlatch.Quarantined, Value: reason, Left: ms, Now: now}, true
	}
	another := func() (redlatch.Reply, bool) {
		theirs := s.marker.guard
		return redlatch.Reply{Status: redlatch.Misconfigured, Guard: &theirs, Now: now}, true
	}
	m := s.marker
	switch req.Op {
	case redlatch.OpExtend, redlatch.OpBreak:
		// What is ours already may be extended by whoever has the same list. A
		// key that is not there is no matter of the marker.
		if m != nil && (m.guard.List != g.List || req.Op == redlatch.OpExtend && req.TTL > m.guard.MaxTTL) && (req.Op == redlatch.OpBreak || s.look(req.Name).Value == req.Value) {
			return another()
		}
		return redlatch.Reply{}, false
	case redlatch.OpAcquire, redlatch.OpRepair:
	default:
		return redlatch.Reply{}, false
	}
	switch {
	case m == nil && s.virgin:
		s.virgin = false
		s.marker = &marker{id: s.id, guard: *g, trusted: now, reason: redlatch.ReasonNew}
		return redlatch.Reply{}, false
	case m == nil && !mark:
		return sits(redlatch.ReasonUnmarked, g.Quarantine)
	case m == nil:
		s.marker = &marker{id: s.id, guard: *g, trusted: now.Add(g.Quarantine), reason: redlatch.ReasonNew}
		return sits(redlatch.ReasonNew, g.Quarantine)
	case m.id != s.id:
		s.marker = &marker{id: s.id, guard: m.guard, trusted: now.Add(m.guard.Quarantine), reason: redlatch.ReasonChanged}
		if m.reason == redlatch.ReasonList && m.trusted.After(s.marker.trusted) {
			s.marker.trusted, s.marker.reason = m.trusted, m.reason
		}
		if !m.agrees(g) {
			return another()
		}
		return sits(s.marker.reason, s.marker.trusted.Sub(now))
	case !m.agrees(g):
		return another()
	case m.trusted.After(now):
		if m.reason != redlatch.ReasonList && m.trusted.Sub(now) > g.Quarantine {
			m.trusted = now.Add(g.Quarantine) // the clock was set back
		}
		return sits(m.reason, m.trusted.Sub(now))
	}
	return redlatch.Reply{}, false
}

// View is what one client's node knows of a server; see redis.Node.
type View struct {
	*Server
	unmarked bool
}

// Do carries out a request.
func (v *View) Do(req redlatch.Request) (redlatch.Reply, error) {
	reply, err := v.do(req, req.Guard != nil && req.Guard.Sure && v.unmarked)
	v.unmarked = reply.Status == redlatch.Quarantined && reply.Value == redlatch.ReasonUnmarked
	return reply, err
}
