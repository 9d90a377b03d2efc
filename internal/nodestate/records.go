package nodestate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Records are the completed occurrences of a name, and how far they can be
// relied on. The script store/redis/lua/records.lua does the same. The zero value is
// no memory of the name.
type Records struct {
	// Completed has the occurrences, and until when each is remembered.
	Completed map[string]time.Time
	// Begun is when the memory began, and Until when it is forgotten. Since is
	// from when on the records are complete.
	Begun, Since, Until time.Time
	// Retention is the longest of the requests.
	Retention time.Duration
	// Server is the server whose memory it is; empty if that is not known.
	Server string
	// Whole says that records which others had before Begun were copied, or
	// that there were none.
	Whole bool
}

func (r *Records) clone() Records {
	c := *r
	c.Completed = maps.Clone(r.Completed)
	return c
}

func (r *Records) empty() bool { return r.Begun.IsZero() && len(r.Completed) == 0 }

// settle removes what has expired.
func (r *Records) settle(now time.Time) {
	maps.DeleteFunc(r.Completed, func(_ string, until time.Time) bool { return !until.After(now) })
	if !r.Until.After(now) {
		*r = Records{Completed: r.Completed}
	}
}

// ordered returns the records, the one that is forgotten last first. They are
// settled.
func (r *Records) ordered(now time.Time) (all []node.Record) {
	for occurrence, until := range r.Completed {
		all = append(all, node.Record{Occurrence: occurrence, Left: until.Sub(now)})
	}
	slices.SortFunc(all, func(a, b node.Record) int {
		return cmp.Or(cmp.Compare(b.Left, a.Left), cmp.Compare(b.Occurrence, a.Occurrence))
	})
	return all
}

// origin is what a server knows about its own data.
type origin struct {
	server string    // empty if the guard is off
	marked time.Time // since when it has lost nothing; zero if that is not known
	new    bool      // it had no data then
}

// origin returns what the marker says about the server's data. A server that
// restarted, or was flushed, is marked anew.
func (s *Server) origin(g *node.Guard) (o origin) {
	if g == nil || g.Off {
		return o
	}
	o.server = s.ID
	if m := s.Marker; m.by(s.ID) && m.Guard.Membership == g.Membership {
		o.marked = m.TrustedFrom
		if m.Reason != node.ReasonFresh {
			o.marked = o.marked.Add(-m.Guard.Quarantine)
		}
		o.new = m.Reason == node.ReasonNew || m.Reason == node.ReasonFresh
	}
	return o
}

// CheckRecords refuses a request that is not valid.
func CheckRecords(req node.RecordsRequest) error {
	switch {
	case req.Op < node.OpComplete || req.Op > node.OpAdopt:
		return fmt.Errorf("operation %d on records is unknown", req.Op)
	case (req.Op == node.OpComplete || req.Op == node.OpCheck) && (req.Occurrence == "" || len(req.Occurrence) > node.MaxOccurrence):
		return &node.ConfigError{Field: "Occurrence", Value: req.Occurrence, Bound: fmt.Sprintf("of 1 to %d bytes", node.MaxOccurrence)}
	case req.Op == node.OpAdopt && len(req.Records) > node.MaxRecords, req.Skip < 0:
		return fmt.Errorf("an operation on records without records, or with more than %d", node.MaxRecords)
	}
	return nil
}

// Records executes a request that has passed CheckRecords.
func (s *Server) Records(now time.Time, req node.RecordsRequest) node.RecordsReply {
	e := s.entry(req.Name, now)
	reply := s.RecordsOf(e, now, req)
	s.store(req.Name, e, now)
	return reply
}

// RecordsOf executes a request for the name of an entry, which is stored elsewhere.
func (s *Server) RecordsOf(e *Entry, now time.Time, req node.RecordsRequest) node.RecordsReply {
	e.Settle(now)
	return e.records(req, now, s.origin(req.Guard))
}

func (e *Entry) records(req node.RecordsRequest, now time.Time, o origin) node.RecordsReply {
	r := &e.Records
	// A memory of another server, or of the time before a restart, may lack the
	// last records.
	if r.Begun.IsZero() || o.server != "" && r.Server != o.server {
		begun := time.UnixMicro(now.UnixMicro()) // as it is stored
		r.Begun, r.Since, r.Server, r.Whole = begun, begun, o.server, false
	}
	reply := node.RecordsReply{Status: node.Granted, Now: now}
	switch {
	case req.Op == node.OpAdopt && !req.Begun.Equal(r.Begun):
		reply.Status = node.Stale
	case req.Op == node.OpAdopt:
		for _, x := range req.Records {
			r.complete(x.Occurrence, now.Add(x.Left))
		}
		if r.Whole = r.Whole || req.Whole; req.Whole && req.Since.Before(r.Since) {
			r.Since = req.Since
		}
	case req.Op == node.OpComplete:
		r.complete(req.Occurrence, now.Add(req.Retention))
	case req.Op == node.OpRecords:
		all := r.ordered(now)
		all = all[min(req.Skip, len(all)):]
		reply.Records = all[:min(len(all), node.MaxRecords)]
	default:
		if _, completed := r.Completed[req.Occurrence]; !completed {
			reply.Status = node.Absent
		}
	}
	r.Until = later(r.Until, now.Add(req.Retention))
	r.Retention = max(r.Retention, req.Retention)
	reply.Begun, reply.Since, reply.Whole, reply.Retention = r.Begun, r.Since, r.Whole, r.Retention
	reply.Marked, reply.New, reply.Count = o.marked, o.new, len(r.Completed)
	return reply
}

// complete records an occurrence, until the given time or longer.
func (r *Records) complete(occurrence string, until time.Time) {
	if r.Completed == nil {
		r.Completed = map[string]time.Time{}
	}
	r.Completed[occurrence] = later(r.Completed[occurrence], until)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
