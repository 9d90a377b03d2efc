package casnode

import (
	"bytes"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/node"
)

// decision is what a request comes to.
type decision struct {
	reply node.Reply
	row   *Row        // to write; nil for none
	wakes []node.Wake // with the row
	// fresh are the times that are new in the row of a store without a clock.
	fresh map[uint64]time.Duration

	// timers are those to start before the row is written, and how long they must run,
	// by their ids. plain is the decision without them.
	timers map[string]time.Duration
	plain  func() decision

	// entry is what the row says then, if the queue is in places. drop is the place
	// that goes with it.
	entry *nodestate.Entry
	drop  *Place
}

// decide executes a request on a snapshot.
func (n *Node) decide(s Snapshot, req node.Request) (d decision, err error) {
	marker, lost := s.marker()
	server := nodestate.Server{ID: s.Server, Marker: marker, Silent: n.ears.store == nil}
	if lost != nil {
		if err := markerDamage(req, lost); err != nil {
			return d, err
		}
	}
	// What has expired meanwhile is no change that is worth a write.
	entry, lost := s.entry()
	if lost != nil && !(req.Op == node.OpBreak && req.Foreign) {
		d.reply = foreign(s.Now)
		d.reply.Clockless = s.by != nil
		return d, nil
	}
	if err := crowded(&entry, req); err != nil {
		return d, err
	}
	before, waited := s.same(&entry), entry.Waits(req.Value) || n.queue.placed(waiter{req.Name, req.Value})
	d = n.apply(&s, &server, &entry, req)
	if lost != nil && d.reply.Status == node.Granted {
		replace(&entry, &server, req, s.Now)
	}
	return n.leaves(&s, d, req, "", &entry, before, waited), nil
}

// leaves returns what to write after a request, with the timers that it leaves. before
// is what the entry was, and keep an occurrence that is not forgotten.
func (n *Node) leaves(s *Snapshot, d decision, req node.Request, keep string, entry *nodestate.Entry, before []byte, waited bool) decision {
	changed := req.Op != node.OpInspect && !bytes.Equal(before, s.same(entry))
	if s.by != nil {
		entry.Limit(mostRecords, mostEnded, keep, s.Now)
		if n.timers != nil {
			plain := entry.Clone()
			if n.queue.store == nil || len(s.Places) == 0 { // who waits observes
				d.timers = leaveTimers(entry, req, d.reply, waited, s.Now)
			}
			d.plain = func() decision { return s.writes(d, changed, req.Name, &plain) }
		}
	}
	return s.writes(d, changed || len(d.timers) > 0, req.Name, entry)
}

// apply executes a request on an entry.
func (n *Node) apply(s *Snapshot, server *nodestate.Server, e *nodestate.Entry, req node.Request) (d decision) {
	if n.queue.store != nil {
		n.beside(s, e, req)
		d.entry = e
		if req.Op == node.OpRelease && req.NoRepair <= 2*req.Window && e.Holders.Of(req.Value, req.Share) < 0 && n.queue.sure(req) {
			// No acquisition and no repair of it can come later: there is no fence to
			// raise, and no value to end. A place that comes late is removed when its
			// turn comes. A longer NoRepair is because of another process.
			req.Token, req.NoRepair = 0, 0
		}
	} else if s.by != nil && req.Ticket != 0 {
		req.Ticket = e.Queue.Place(req)
	}
	queue := e.Queue
	d.reply, d.wakes = server.ApplyTo(e, s.Now, req)
	d.reply.Clockless = s.by != nil
	if n.queue.store != nil {
		n.placed(&d, req)
	}
	e.Queue.Coarsen(&queue)
	return d
}

// writes returns the decision to write an entry, if it has changed.
func (s *Snapshot) writes(d decision, changed bool, name string, e *nodestate.Entry) decision {
	if !changed {
		d.row, d.wakes = nil, nil
		return d
	}
	d.row = &Row{Name: name}
	d.row.State, d.fresh = s.encode(e)
	return d
}

// entry returns what the row says about its name, as of now.
func (s *Snapshot) entry() (nodestate.Entry, error) {
	e, err := s.stored()
	if s.KeepsFences {
		e.Bind(s.Floor, s.Now)
	}
	e.Settle(s.Now)
	return e, err
}

// stored returns what the row says, expired or not.
func (s *Snapshot) stored() (nodestate.Entry, error) {
	if s.by != nil {
		return s.observed()
	}
	e, err := s.Row.entry()
	e.Move(s.Offset)
	return e, err
}

// encode returns the state of an entry, by the clock of the store, and its times that
// are new if the store has none. It changes the entry.
func (s *Snapshot) encode(e *nodestate.Entry) ([]byte, map[uint64]time.Duration) {
	if s.by != nil {
		return s.state(e.AppendSeen)
	}
	e.Move(-s.Offset)
	return e.AppendTo(nil), nil
}

func (s *Snapshot) encodeMarker(m *nodestate.Marker) ([]byte, map[uint64]time.Duration) {
	if s.by != nil {
		return s.state(m.AppendSeen)
	}
	return m.AppendTo(nil), nil
}
