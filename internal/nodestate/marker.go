package nodestate

import (
	"cmp"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Marker is by what a server knows that it has forgotten nothing. The script
// store/redis/lua/mark.lua, with lib/marker.lua and lib/guard.lua, does the same. The zero value is
// no marker.
//
//	no marker               MarkWrite                            quarantined
//	no marker               MarkFresh                            trusted
//	quarantined, as new     MarkFresh                            trusted
//	quarantined             its end, TrustedFrom                 trusted
//	quarantined, trusted    a restart, or the clock is set back  has to be marked again
//	has to be marked again  MarkWrite                            quarantined
//	any                     MarkBar                              barred
//	any, also barred        MarkReplace                          quarantined
//	any                     all data is lost                     no marker
//
// MarkBar and MarkReplace change nothing if the marker is valid for their membership.
// MarkWrite also writes over a lower generation.
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
		return node.Reply{Status: node.Misconfigured, Marker: node.Marker{Guard: &theirs}, Now: now}, true
	}
	quarantined := func(reason string, left time.Duration, unmarked bool) (node.Reply, bool) {
		return node.Reply{Status: node.Quarantined, Marker: node.Marker{Reason: reason, NeedsMark: unmarked}, Left: wholeMS(left), Now: now}, true
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
			return quarantined(m.Reason, m.TrustedFrom.Sub(now), false)
		case g.Off:
		case !m.written():
			return quarantined(node.ReasonNew, g.Quarantine, true)
		case !m.Guard.Agrees(g):
			return another()
		case m.ID != s.ID || m.setBack(now) || m.Epoch < req.Epoch:
			return quarantined(node.ReasonChanged, m.Guard.Quarantine, true)
		case m.TrustedFrom.After(now):
			return quarantined(m.Reason, m.TrustedFrom.Sub(now), false)
		}
	}
	return node.Reply{}, false
}

// standing is what the marker is to a MarkRequest.
type standing uint8

const (
	absent  standing = iota // there is none
	former                  // of a lower generation of the client's membership
	others                  // of another membership, or with other parameters; also that of a barred server
	earlier                 // from before a restart, or before a marking that the client knows of
	valid
)

func (m Marker) standing(id string, req *node.MarkRequest) standing {
	switch {
	case !m.written():
		return absent
	case m.Guard.Membership == req.Guard.Membership && m.Guard.Generation < req.Guard.Generation:
		return former // the server missed a change
	case !m.Guard.Agrees(req.Guard):
		return others
	case m.ID != id || m.Epoch < req.Epoch:
		return earlier
	}
	return valid
}

// CheckMark refuses a request that is not valid.
func CheckMark(req node.MarkRequest) error {
	if req.Guard == nil || req.Mark > node.MarkNote {
		return fmt.Errorf("mark %d is unknown, or comes without a guard", req.Mark)
	}
	return nil
}

// Mark reads or writes the marker. The request has passed CheckMark.
func (s *Server) Mark(now time.Time, req node.MarkRequest) node.MarkReply {
	if !req.Until.IsZero() && now.After(req.Until) {
		return s.Marker.reply(now, node.Stale)
	}
	is, own := s.Marker.standing(s.ID, &req), s.Marker.written() && s.Marker.Guard.Membership == req.Guard.Membership
	epochs := req.Epochs
	if own && is != former {
		epochs = s.Marker.Epochs.Merge(epochs) // else the notes are of a former membership
	}
	if req.Mark == node.MarkNote && own {
		s.Marker.Epochs = epochs
	}
	m := s.Marker
	if reason := m.change(is, &req, now); reason != "" {
		s.write(reason, now, &req, own, epochs)
		return s.Marker.said(valid, now)
	}
	return m.said(is, now)
}

// change returns with which reason a request writes the marker; empty if it does not.
func (m Marker) change(is standing, req *node.MarkRequest, now time.Time) string {
	switch {
	case req.Mark == node.MarkRead, req.Mark == node.MarkNote:
		return ""
	case is == valid: // what follows is for all others
	case req.Mark == node.MarkBar:
		return node.ReasonBarred
	case req.Mark == node.MarkReplace:
		return node.ReasonMembership
	}
	fresh := req.Mark == node.MarkFresh
	switch is {
	case absent:
		if fresh {
			return node.ReasonFresh
		}
		return node.ReasonNew
	case former:
		return node.ReasonMembership
	case others:
		// Compared here, so that a request that comes late undoes no later change.
		if !fresh && m.Guard.Membership != req.Guard.Membership && m.Guard.Generation < req.Guard.Generation {
			return node.ReasonMembership
		}
	case earlier:
		if m.changing(now) {
			return node.ReasonMembership
		}
		return node.ReasonChanged
	case valid:
		switch {
		case req.Mark == node.MarkWrite && m.setBack(now):
			return m.Reason
		case fresh && m.TrustedFrom.After(now) && m.Reason == node.ReasonNew:
			return node.ReasonFresh
		}
	}
	return ""
}

// write writes the marker. own says that the present one is of the same membership.
func (s *Server) write(reason string, now time.Time, req *node.MarkRequest, own bool, epochs node.Epochs) {
	g, m := *req.Guard, s.Marker
	// What it was barred from stays known, so that the same change can be run again.
	g.Off, g.Told, g.From, g.Generation = false, req.Mark == node.MarkReplace && g.Told, m.Guard.From, max(g.Generation, 1)
	if own {
		g.Generation = max(g.Generation, m.Guard.Generation)
	}
	// Locks that may have been forgotten were granted under the old parameters.
	left := max(g.Quarantine, req.Least, m.Guard.Quarantine)
	// After a membership change the quarantine may be longer than the marker's
	// parameters require, and holds for all clients.
	if m.changing(now) {
		left = max(left, min(m.Lasts, wholeMS(m.TrustedFrom.Sub(now))))
	}
	s.Marker = Marker{ID: s.ID, Guard: g, Reason: reason, Epoch: max(m.Epoch, req.Epoch) + 1, Lineage: cmp.Or(req.Lineage, m.Lineage, "00000000"), Epochs: epochs}
	if reason == node.ReasonBarred {
		s.Marker.bar(m, left)
		return
	}
	quarantine := now.Add(left)
	if reason == node.ReasonFresh {
		quarantine = now
	}
	s.Marker.TrustedFrom, s.Marker.Lasts = quarantine, quarantine.Sub(now)
}

// bar makes a marker that of a barred server. It keeps the parameters of the former
// one. One that was only told is from nowhere.
func (m *Marker) bar(former Marker, left time.Duration) {
	to := m.Guard
	if former.written() {
		m.Guard = former.Guard
	}
	if former.written() && !former.Guard.Barred() {
		m.Guard.From = ""
		if !former.Guard.Told {
			m.Guard.From = former.Guard.Nodes
		}
	}
	m.Guard.Membership, m.Guard.Nodes, m.Guard.Quarantine, m.Guard.Generation, m.Guard.Told = node.BarredMembership, to.Nodes, left, to.Generation, false
	m.TrustedFrom, m.Epoch = trustedNever, m.Epoch-1 // it is no marking
}

// said is the answer of a server with this marker.
func (m Marker) said(is standing, now time.Time) node.MarkReply {
	switch {
	case m.Guard.Barred() && is == valid: // now
		return m.reply(now, node.Misconfigured)
	case is == others:
		r := m.reply(now, node.Misconfigured)
		r.Left = wholeMS(m.TrustedFrom.Sub(now))
		return r
	case is != valid:
		return m.reply(now, node.Absent)
	case !m.TrustedFrom.After(now):
		return m.reply(now, node.Granted)
	}
	r := m.reply(now, node.Quarantined)
	if !m.setBack(now) { // otherwise it has to be marked again
		r.Left = wholeMS(m.TrustedFrom.Sub(now))
	}
	return r
}

// reply is an answer to a MarkRequest.
func (m Marker) reply(now time.Time, status node.Status) node.MarkReply {
	r := node.MarkReply{Status: status, Now: now}
	if m.written() {
		g := m.Guard
		r.Marker = node.Marker{Guard: &g, Reason: m.Reason, Epoch: m.Epoch, Lineage: m.Lineage, Epochs: m.Epochs}
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

// AppendTo appends the marker.
func (m *Marker) AppendTo(b []byte) []byte { return m.encode(b, nil) }

// DecodeMarker reads what AppendTo wrote. No bytes are no marker.
func DecodeMarker(b []byte) (m Marker, err error) {
	if err = m.decode(b, nil); err != nil {
		return Marker{}, err
	}
	return m, nil
}

func (m *Marker) encode(b []byte, s *Sight) []byte {
	c := writing(s)
	m.code(c)
	return c.written(b)
}

func (m *Marker) decode(b []byte, s *Sight) error {
	if len(b) == 0 {
		return nil
	}
	c := reading(b, s)
	m.code(c)
	return c.read()
}

func (m *Marker) code(c *codec) {
	g := &m.Guard
	c.text(&m.ID)
	c.text(&g.Membership)
	c.text(&g.Nodes)
	number(c, &g.MaxTTL)
	number(c, &g.Window)
	number(c, &g.Quarantine)
	number(c, &g.Replicas)
	number(c, &g.ReplicaLag)
	number(c, &g.Generation)
	c.bool(&g.Told)
	c.text(&g.From)
	c.time(&m.TrustedFrom)
	number(c, &m.Lasts)
	c.text(&m.Reason)
	number(c, &m.Epoch)
	c.text(&m.Lineage)
	c.text((*string)(&m.Epochs))
}
