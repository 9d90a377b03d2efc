package nodestate

import (
	"cmp"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Marker is by what a server knows that it has forgotten nothing. The scripts
// store/redis/lua/marker.lua, guard.lua and mark.lua do the same. The zero value is
// no marker.
//
//	             MarkWrite              TrustedFrom
//	no marker ───────────▶ quarantined ────────────▶ trusted
//	    ▲                      ▲   │                   │  │
//	    │ flushed              │   │ MarkBar           │  │ MarkBar
//	    │          MarkWrite   │   ▼                   │  │
//	 anywhere      after a     │  barred ◀─────────────┼──┘
//	               restart     │   │ MarkReplace       │ restarted, clock set back
//	                           ├───┘                   ▼
//	                           └───────────── marked by another ID
//
// MarkFresh on a server without a marker trusts it at once.
type Marker struct {
	// ID is the server that wrote it.
	ID string
	// Guard is the membership that the server belongs to, and the cluster
	// parameters. Its Membership is node.BarredMembership while a membership change has
	// barred the server.
	Guard node.Guard
	// TrustedFrom is when the quarantine ends. Lasts is how long it was when the
	// marker was written.
	TrustedFrom time.Time
	Lasts       time.Duration
	// Reason is why the server was quarantined.
	Reason string
	// Epoch counts the markings. A replica that takes the server's place is
	// marked with a higher one.
	Epoch uint64
	// Lineage is that of the data, and Epochs notes the epoch of each; see
	// node.Epochs.
	Lineage string
	Epochs  node.Epochs
}

// trustedNever is the TrustedFrom of a barred server.
var trustedNever = time.UnixMicro(9000000000000000)

func (m Marker) written() bool { return m != Marker{} }

// by reports whether there is a marker, and the server with this id wrote it.
func (m Marker) by(id string) bool { return m.written() && m.ID == id }

// former reports whether the marker is of a lower generation of the client's
// membership: the server missed a change.
func (m Marker) former(g *node.Guard) bool {
	return m.written() && m.Guard.Membership == g.Membership && m.Guard.Generation < g.Generation
}

// valid reports whether the marker is this server's, and what the request
// expects.
func (m Marker) valid(id string, req node.Request) bool {
	return m.by(id) && m.Guard.Agrees(req.Guard) && !m.former(req.Guard) && m.Epoch >= req.Epoch
}

// setBack reports whether the clock was set back since the marker was written:
// a whole quarantine from now is then enough. After a membership change it may be
// longer than the marker's parameters require.
func (m Marker) setBack(now time.Time) bool {
	return m.TrustedFrom.Sub(now) > max(m.Lasts, m.Guard.Quarantine)
}

// changing reports whether the server is quarantined after a membership change.
// Locks of the former membership may be held on other servers, so the quarantine
// holds for clients with the guard off too.
func (m Marker) changing(now time.Time) bool {
	return m.Reason == node.ReasonMembership && m.TrustedFrom.After(now)
}

// refuse is the check before a grant, an extension or a break of the name of e.
// It returns the refusal, if there is one.
func (s *Server) refuse(now time.Time, req node.Request, e *Entry) (reply node.Reply, refused bool) {
	g, m := req.Guard, s.Marker
	another := func() (node.Reply, bool) {
		theirs := m.Guard
		return node.Reply{Status: node.Misconfigured, Guard: &theirs, Now: now}, true
	}
	quarantined := func(reason string, left time.Duration) (node.Reply, bool) {
		return node.Reply{Status: node.Quarantined, Value: reason, Left: wholeMS(left), Now: now}, true
	}
	other := m.written() && m.Guard.Membership != g.Membership
	tooLong := m.written() && req.TTL > m.Guard.MaxTTL
	switch req.Op {
	case node.OpExtend:
		// Clients of the same membership may extend their locks, in quarantine
		// too. A missing key cannot be extended, so it needs no check.
		if (other || tooLong) && e.Holders.Of(req.Value, req.Share) >= 0 {
			return another()
		}
	case node.OpBreak:
		if other {
			return another()
		}
	case node.OpAcquire, node.OpRepair:
		switch {
		case g.Off && (other || tooLong):
			return another()
		case g.Off && m.changing(now):
			return quarantined(m.Reason, m.TrustedFrom.Sub(now))
		case g.Off:
		case !m.written():
			return quarantined(node.ReasonUnmarked, g.Quarantine)
		case !m.Guard.Agrees(g):
			return another()
		case m.ID != s.ID || m.setBack(now) || m.Epoch < req.Epoch:
			return quarantined(node.ReasonRemark, m.Guard.Quarantine)
		case m.TrustedFrom.After(now):
			return quarantined(m.Reason, m.TrustedFrom.Sub(now))
		}
	}
	return node.Reply{}, false
}

// mark reads or writes the marker, as an OpMark asks.
func (s *Server) mark(now time.Time, req node.Request) node.Reply {
	g, m := *req.Guard, s.Marker
	// What it was barred from stays known, so that the same change can be run again.
	g.Off, g.Told, g.From = false, req.Mark == node.MarkTell, m.Guard.From
	if !req.Until.IsZero() && now.After(req.Until) {
		return m.reply(now, node.Stale)
	}
	left, changed := max(g.Quarantine, req.TTL), node.ReasonChanged
	if m.written() {
		// Locks that may have been forgotten were granted under the old
		// parameters.
		left = max(left, m.Guard.Quarantine)
		// After a membership change the quarantine may be longer than the
		// marker's parameters require, and holds for all clients.
		if m.changing(now) {
			changed, left = node.ReasonMembership, max(left, min(m.Lasts, wholeMS(m.TrustedFrom.Sub(now))))
		}
	}
	g.Generation = max(g.Generation, 1)
	if m.written() && m.Guard.Membership == g.Membership {
		g.Generation = max(g.Generation, m.Guard.Generation)
	}
	epoch, epochs, lineage := max(m.Epoch, req.Epoch), req.Epochs, cmp.Or(req.Lineage, m.Lineage, "00000000")
	if m.written() && m.Guard.Membership == g.Membership && !m.former(req.Guard) {
		epochs = m.Epochs.Merge(epochs) // else the notes are of a former membership
	}
	write := func(trusted time.Time, reason string) node.Reply {
		s.Marker = Marker{ID: s.ID, Guard: g, TrustedFrom: trusted, Lasts: trusted.Sub(now), Reason: reason, Epoch: epoch + 1, Lineage: lineage, Epochs: epochs}
		return s.Marker.trust(now)
	}
	quarantine := now.Add(left)
	reads := req.Mark == node.MarkRead || req.Mark == node.MarkNote
	if req.Mark == node.MarkNote && m.written() && m.Guard.Membership == g.Membership {
		s.Marker.Epochs = epochs
		m = s.Marker
	}
	switch {
	case req.Mark == node.MarkBar && !m.valid(s.ID, req):
		// It keeps the former parameters. One that was only told is from nowhere.
		barred := g
		if m.written() {
			barred = m.Guard
		}
		if m.written() && !m.Guard.Barred() {
			barred.From = ""
			if !m.Guard.Told {
				barred.From = m.Guard.Nodes
			}
		}
		barred.Told = false
		barred.Membership, barred.Nodes, barred.Quarantine, barred.Generation = node.BarredMembership, g.Nodes, left, g.Generation
		s.Marker = Marker{ID: s.ID, Guard: barred, TrustedFrom: trustedNever, Reason: node.ReasonBarred, Epoch: epoch, Lineage: lineage, Epochs: epochs}
		return s.Marker.reply(now, node.Misconfigured)
	case (req.Mark == node.MarkReplace || req.Mark == node.MarkTell) && !m.valid(s.ID, req):
		return write(quarantine, node.ReasonMembership)
	case !m.written() && reads:
		return m.reply(now, node.Absent)
	case !m.written() && req.Mark == node.MarkFresh:
		return write(now, node.ReasonFresh)
	case !m.written():
		return write(quarantine, node.ReasonNew)
	case m.former(req.Guard) && reads:
		return m.reply(now, node.Absent)
	case m.former(req.Guard):
		return write(quarantine, node.ReasonMembership)
	case req.Mark == node.MarkWrite && m.Guard.Membership != g.Membership && m.Guard.Generation < req.Guard.Generation:
		// Compared here, so that a request that comes late undoes no later change.
		return write(quarantine, node.ReasonMembership)
	case !m.Guard.Agrees(&g):
		r := m.reply(now, node.Misconfigured)
		r.Left = wholeMS(m.TrustedFrom.Sub(now))
		return r
	case (m.ID != s.ID || m.Epoch < req.Epoch) && reads:
		return m.reply(now, node.Absent)
	case m.ID != s.ID || m.Epoch < req.Epoch:
		return write(quarantine, changed)
	case req.Mark == node.MarkWrite && m.setBack(now):
		return write(quarantine, m.Reason)
	case req.Mark == node.MarkFresh && m.TrustedFrom.After(now) && m.Reason == node.ReasonNew:
		return write(now, node.ReasonFresh)
	}
	return m.trust(now)
}

// trust is the answer of a server with this marker, which is its own.
func (m Marker) trust(now time.Time) node.Reply {
	if !m.TrustedFrom.After(now) {
		return m.reply(now, node.Granted)
	}
	r := m.reply(now, node.Quarantined)
	if !m.setBack(now) { // otherwise it has to be marked again
		r.Left = wholeMS(m.TrustedFrom.Sub(now))
	}
	return r
}

// reply is an answer to an OpMark.
func (m Marker) reply(now time.Time, status node.Status) node.Reply {
	r := node.Reply{Status: status, Now: now}
	if m.written() {
		g := m.Guard
		r.Guard, r.Value, r.Epoch, r.Lineage, r.Epochs = &g, m.Reason, m.Epoch, m.Lineage, m.Epochs
		if m.Reason != node.ReasonFresh {
			r.TrustedFrom = m.TrustedFrom
		}
	}
	return r
}

// wholeMS rounds up to milliseconds, the unit of the servers' answers. More
// than a century is returned as never.
func wholeMS(left time.Duration) time.Duration {
	if left > 1<<62 {
		return node.NoExpiry
	}
	return max(0, (left + time.Millisecond - 1).Truncate(time.Millisecond))
}
