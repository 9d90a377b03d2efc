package nodestate

import (
	"cmp"
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
func (r *Records) ordered() []node.Completed {
	var all []node.Completed
	for occurrence, until := range r.Completed {
		all = append(all, node.Completed{Occurrence: occurrence, Until: until})
	}
	slices.SortFunc(all, func(a, b node.Completed) int {
		return cmp.Or(b.Until.Compare(a.Until), cmp.Compare(b.Occurrence, a.Occurrence))
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
func (s *Server) origin(req node.Request) (o origin) {
	if req.Guard == nil || req.Guard.Off {
		return o
	}
	o.server = s.ID
	if m := s.Marker; m.by(s.ID) && m.Guard.Membership == req.Guard.Membership {
		o.marked = m.TrustedFrom
		if m.Reason != node.ReasonFresh {
			o.marked = o.marked.Add(-m.Guard.Quarantine)
		}
		o.new = m.Reason == node.ReasonNew || m.Reason == node.ReasonFresh
	}
	return o
}

// isRecords reports whether an operation is about records.
func isRecords(op node.Op) bool { return op >= node.OpComplete && op <= node.OpAdopt }

// records executes an operation on the records of a name.
func (e *Entry) records(req node.Request, now time.Time, o origin) node.Reply {
	r := &e.Records
	// A memory of another server, or of the time before a restart, may lack the
	// last records.
	if r.Begun.IsZero() || o.server != "" && r.Server != o.server {
		begun := time.UnixMicro(now.UnixMicro()) // as it is stored
		r.Begun, r.Since, r.Server, r.Whole = begun, begun, o.server, false
	}
	reply := node.Reply{Status: node.Granted, Now: now}
	var page []node.Record
	switch a := req.Adopt; {
	case req.Op == node.OpAdopt && !a.Begun.Equal(r.Begun):
		reply.Status = node.Stale
	case req.Op == node.OpAdopt:
		for _, x := range a.Records {
			r.complete(x.Occurrence, now.Add(x.Left))
		}
		if a.Whole {
			r.Whole = true
			if a.Since.Before(r.Since) {
				r.Since = a.Since
			}
		}
	case req.Op == node.OpComplete:
		r.complete(req.Occurrence, now.Add(req.Retention))
	case req.Op == node.OpRecords:
		all := r.ordered()
		all = all[min(req.Skip, len(all)):]
		for _, x := range all[:min(len(all), node.MaxRecords)] {
			page = append(page, node.Record{Occurrence: x.Occurrence, Left: x.Until.Sub(now)})
		}
	default:
		if _, completed := r.Completed[req.Occurrence]; !completed {
			reply.Status = node.Absent
		}
	}
	r.Until = later(r.Until, now.Add(req.Retention))
	r.Retention = max(r.Retention, req.Retention)
	reply.Memory = &node.Memory{
		Begun: r.Begun, Since: r.Since, Whole: r.Whole, Retention: r.Retention,
		Marked: o.marked, New: o.new, Count: len(r.Completed), Records: page,
	}
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
