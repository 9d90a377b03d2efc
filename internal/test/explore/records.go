package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file searches what can happen to the records of a job. Callers of Once are
// protocol.Job values, which come one after the other: the lock keeps them apart, and
// is explored by itself. They have it when they ask first, unless the instance says
// otherwise. What they send is executed at once, late or never, but a question that
// is not waited for any more never; a caller may crash at any point; nodes lose their
// data, or restart without the last write. They are nodestate.Server values.

// Jobs is what is searched.
type Jobs struct {
	Servers int
	// Callers is the occurrence of each caller, one letter each. One with a capital
	// letter keeps records for three seconds, the others for an hour.
	Callers string
	Losses  int  // how often a node loses its data
	OldData int  // how often a node restarts without its last write
	Known   bool // all nodes have heard of the name, and the first two that a is completed
	Tries   bool // callers look first, without the lock
	States  int

	// Rules that are switched off.
	AnyQuorum    bool // any quorum without the record says that it is not completed
	SameServer   bool // a node that restarted with old data does not show it
	OwnRetention bool // a node does not say how long records are kept
}

type parcel struct {
	caller int
	ask    protocol.Ask
}

type jobState struct {
	servers  []*nodestate.Server // copied before they are changed
	before   []*nodestate.Server // each one before its last write
	lost     []int               // how often each has lost data
	losses   int
	olds     int
	caller   int
	job      protocol.Job
	flight   []parcel
	complete string // the occurrences whose completion was confirmed to a caller
	bad      Violation
	text     string // the step that led here
}

// now is a time at which nodes that lost data at different times differ in age.
func (s *jobState) now() time.Time {
	return time.UnixMicro(1_800_000_000_000_000).Add(time.Duration(20*(s.losses+s.olds)) * time.Second)
}

func (s *jobState) clone() *jobState {
	c := *s
	c.servers, c.before, c.lost, c.flight = slices.Clone(s.servers), slices.Clone(s.before), slices.Clone(s.lost), slices.Clone(s.flight)
	c.job.Said, c.job.Union = slices.Clone(s.job.Said), maps.Clone(s.job.Union)
	return &c
}

var jobGuard = &node.Guard{Membership: oldMembership, MaxTTL: time.Second, Window: time.Second, Quarantine: time.Second}

func (in *Jobs) first() *jobState {
	s := &jobState{before: make([]*nodestate.Server, in.Servers), lost: make([]int, in.Servers), caller: -1}
	for i := range in.Servers {
		srv := &nodestate.Server{ID: fmt.Sprint(i)}
		srv.Mark(s.now(), node.MarkRequest{Mark: node.MarkFresh, Guard: jobGuard})
		if in.Known {
			s.complete = "a"
			op := []node.Op{node.OpComplete, node.OpComplete, node.OpCheck}[i]
			srv.Records(s.now(), node.RecordsRequest{Op: op, Name: lock, Occurrence: "a", Retention: time.Hour, Guard: jobGuard})
		}
		s.servers = append(s.servers, srv)
	}
	in.leave(s)
	return s
}

// leave ends a caller, and begins the next one. What was sent stays in flight.
func (in *Jobs) leave(s *jobState) {
	s.caller++
	if s.job = (protocol.Job{}); s.caller == len(in.Callers) {
		return
	}
	occurrence, retention, how := in.Callers[s.caller:s.caller+1], time.Hour, protocol.Locked
	if lower := strings.ToLower(occurrence); lower != occurrence {
		occurrence, retention = lower, 3*time.Second
	}
	if in.Tries {
		how = protocol.Try
	}
	s.job = protocol.Job{Nodes: in.Servers, Request: node.RecordsRequest{Name: lock, Occurrence: occurrence, Retention: retention, Guard: jobGuard}}
	in.handle(s, protocol.JobEvent{Kind: how})
}

// handle gives the caller an event, and does what follows from it.
func (in *Jobs) handle(s *jobState, e protocol.JobEvent) {
	for _, ask := range s.job.Handle(e) {
		s.flight = append(s.flight, parcel{s.caller, ask})
	}
	s.flight = slices.DeleteFunc(s.flight, func(p parcel) bool {
		return (p.ask.Request.Op == node.OpCheck || p.ask.Request.Op == node.OpRecords) && !s.awaited(p)
	})
	occurrence := s.job.Request.Occurrence
	switch s.job.State {
	case protocol.NeedsLock, protocol.MayCopy:
		in.handle(s, protocol.JobEvent{Kind: protocol.Locked})
	case protocol.Runs:
		s.text += fmt.Sprintf("caller %d runs %s\n", s.caller, occurrence)
		in.judge(s)
		in.handle(s, protocol.JobEvent{Kind: protocol.Ran})
	case protocol.Completed:
		s.text += fmt.Sprintf("caller %d is confirmed that %s is completed\n", s.caller, occurrence)
		if !strings.Contains(s.complete, occurrence) {
			s.complete += occurrence
		}
		in.leave(s)
	case protocol.Unknown, protocol.TooFew:
		s.text += "it is unknown whether it is completed\n"
		in.leave(s)
	}
}

// awaited reports whether the caller waits for the answer.
func (s *jobState) awaited(p parcel) bool { return p.caller == s.caller && p.ask.Round == s.job.Round }

// judge judges a run.
func (in *Jobs) judge(s *jobState) {
	occurrence, kept := s.job.Request.Occurrence, 0
	if !strings.Contains(s.complete, occurrence) {
		return
	}
	for i, srv := range s.servers {
		if has := srv.Stored(lock); s.lost[i] == 0 || has != nil && !has.Records.Completed[occurrence].IsZero() {
			kept++
		}
	}
	switch {
	case s.job.Found.Memory == protocol.Remembered:
		s.bad = "it ran again, by the word of nodes that forgot it"
	case kept >= in.Servers-protocol.Quorum(in.Servers)+1:
		s.bad = "it ran again, though enough nodes have kept their records"
	}
}

// key is the same for states that go on alike.
func (s *jobState) key() []byte {
	var b []byte
	for i, srv := range s.servers {
		for _, x := range []*nodestate.Server{srv, s.before[i]} {
			if x == nil {
				b = append(b, 0xff)
				continue
			}
			if e := x.Stored(lock); e != nil {
				b = e.AppendTo(b)
			}
			b = append(x.Marker.AppendTo(b), x.ID...)
		}
		b = append(b, '|', byte(s.lost[i]))
	}
	b = fmt.Append(b, s.losses, s.olds, s.caller, s.job.State, s.job.Mode, int64(s.job.Request.Retention), s.job.Answers, s.job.Read, s.job.Found, s.job.Union, s.complete)
	for _, x := range s.job.Said {
		b = fmt.Append(b, x.Completed, x.Count, x.Whole, int64(x.Lasted), int64(x.Retention), int64(x.Age), x.New, x.Begun.UnixMicro(), int64(x.Reach), '|')
	}
	var flight []string
	for _, p := range s.flight {
		f := fmt.Sprint(p.ask.Node, s.awaited(p), p.ask.Request.Op, p.ask.Request.Occurrence, int64(p.ask.Request.Retention))
		if a := p.ask.Request; a.Op == node.OpAdopt {
			f += fmt.Sprint(a.Begun.UnixMicro(), a.Records)
		}
		flight = append(flight, f)
	}
	slices.Sort(flight)
	return append(b, strings.Join(flight, ";")...)
}

// next calls f with every state that can follow.
func (in *Jobs) next(s *jobState, f func(*jobState)) {
	step := func(text string, change func(c *jobState)) {
		c := s.clone()
		c.text = text + "\n"
		change(c)
		f(c)
	}
	for i := range s.servers {
		restart := func(c *jobState, disk nodestate.Server, data bool) {
			c.lost[i]++
			if !data || !in.SameServer {
				disk.Restart(data, fmt.Sprintf("%d after %d", i, c.losses+c.olds))
				disk.Mark(c.now().Add(-10*time.Second), node.MarkRequest{Mark: node.MarkWrite, Guard: jobGuard})
			}
			c.servers[i], c.before[i] = &disk, nil
		}
		if s.losses < in.Losses {
			step(fmt.Sprintf("node %d loses its data", i), func(c *jobState) {
				c.losses++
				restart(c, nodestate.Server{}, false)
			})
		}
		if s.olds < in.OldData && s.before[i] != nil {
			step(fmt.Sprintf("node %d restarts without its last write", i), func(c *jobState) {
				c.olds++
				restart(c, s.before[i].Clone(), true)
			})
		}
	}
	for k, p := range s.flight {
		i, req := p.ask.Node, p.ask.Request
		step(fmt.Sprintf("node %d executes: %v %s of caller %d", i, req.Op, req.Occurrence, p.caller), func(c *jobState) {
			c.flight = slices.Delete(c.flight, k, k+1)
			is := s.servers[i].Clone()
			c.servers[i] = &is
			if req.Op != node.OpRecords && req.Op != node.OpCheck {
				c.before[i] = s.servers[i]
			}
			r := is.Records(c.now(), req)
			if p.caller != s.caller {
				return
			}
			r.Whole = r.Whole || in.AnyQuorum
			if in.OwnRetention {
				r.Retention = req.Retention
			}
			in.handle(c, protocol.JobEvent{Kind: protocol.Answered, Ask: p.ask, Reply: &r})
		})
	}
	if s.job.Awaited != 0 && (s.job.State != protocol.Checking || s.job.Answers != 0) {
		step(fmt.Sprintf("caller %d crashes", s.caller), in.leave)
		step(fmt.Sprintf("caller %d waits no longer", s.caller), func(c *jobState) { in.handle(c, protocol.JobEvent{Kind: protocol.Over}) })
	}
}

// SearchJobs searches for an occurrence that runs again.
func SearchJobs(in Jobs) Result {
	p := newPrinter()
	r, way := space[*jobState]{
		first: in.first(), next: in.next, print: func(s *jobState) Print { return p.hash(s.key()) },
		found: func(s *jobState) bool { return s.bad != Fine }, states: in.States,
	}.search()
	for _, s := range way {
		r.Story, r.Bad = r.Story+s.text, s.bad
	}
	return r
}
