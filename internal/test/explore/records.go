package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file searches what can happen to the records of a job. Callers of Once
// come one after the other: the lock keeps them apart, and is explored by itself.
// Their requests are executed at once, late or never; a caller may crash at any
// point; nodes lose their data, or restart without the last write. The rule is
// protocol.Find, and the nodes are nodestate.Server values.

// Jobs is what is searched.
type Jobs struct {
	Servers int
	Callers string // the occurrence of each caller, one letter each
	Losses  int    // how often a node loses its data
	OldData int    // how often a node restarts without its last write
	States  int

	// Rules that are switched off.
	AnyQuorum  bool // any quorum without the record says that it is not completed
	SameServer bool // a node that restarted with old data does not show it
}

// The phases of a caller.
const (
	checking = iota
	reading
	completing
)

type parcel struct {
	server int
	caller int
	req    node.Request
}

type jobState struct {
	servers  []*nodestate.Server // copied before they are changed
	before   []*nodestate.Server // each one before its last write
	lost     []int               // how often each has lost data
	losses   int
	olds     int
	caller   int
	phase    int
	replies  []*node.Reply
	read     protocol.Set
	found    protocol.Found
	union    []string
	acks     protocol.Set
	flight   []parcel
	complete string // the occurrences whose completion was confirmed to a caller
	bad      Violation
	text     string // the step that led here
}

// now is a time at which nodes that lost data at different times differ in age.
func (s *jobState) now() time.Time {
	return time.UnixMicro(1_800_000_000_000_000).Add(time.Duration(10*(s.losses+s.olds)) * time.Second)
}

func (s *jobState) clone() *jobState {
	c := *s
	c.servers, c.before, c.lost = slices.Clone(s.servers), slices.Clone(s.before), slices.Clone(s.lost)
	c.replies, c.union, c.flight = slices.Clone(s.replies), slices.Clone(s.union), slices.Clone(s.flight)
	return &c
}

var jobGuard = &node.Guard{Membership: oldMembership, MaxTTL: time.Second, Window: time.Second, Quarantine: time.Second}

// do executes a request on a node.
func (s *jobState) do(i int, req node.Request) node.Reply {
	req.Name, req.Retention, req.Guard = lock, time.Hour, jobGuard
	was := s.servers[i]
	is := was.Clone()
	s.servers[i] = &is
	if req.Op != node.OpRecords && req.Op != node.OpCheck {
		s.before[i] = was
	}
	reply, _ := is.Apply(s.now(), req)
	return reply
}

func (in *Jobs) first() *jobState {
	s := &jobState{before: make([]*nodestate.Server, in.Servers), lost: make([]int, in.Servers), replies: make([]*node.Reply, in.Servers)}
	for i := range in.Servers {
		srv := &nodestate.Server{ID: fmt.Sprint(i)}
		srv.Apply(s.now(), node.Request{Op: node.OpMark, Mark: node.MarkFresh, Guard: jobGuard})
		s.servers = append(s.servers, srv)
	}
	return s
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
		if r := s.replies[i]; r != nil {
			b = fmt.Append(b, r.Status, r.Memory.Count, r.Memory.Begun.UnixMicro(), r.Memory.Retention, r.Memory.Whole)
		}
		b = append(b, '|', byte(s.lost[i]))
	}
	b = fmt.Append(b, s.losses, s.olds, s.caller, s.phase, s.read, s.found, s.union, s.acks, s.complete)
	var flight []string
	for _, p := range s.flight {
		f := fmt.Sprint(p.server, p.caller == s.caller, p.req.Op, p.req.Occurrence)
		if a := p.req.Adopt; a != nil {
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
				disk.Apply(c.now(), node.Request{Op: node.OpMark, Mark: node.MarkWrite, Guard: jobGuard})
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
		step(fmt.Sprintf("node %d executes: %v %s of caller %d", p.server, p.req.Op, p.req.Occurrence, p.caller), func(c *jobState) {
			c.flight = slices.Delete(c.flight, k, k+1)
			r := c.do(p.server, p.req)
			if p.caller != s.caller || p.req.Op != node.OpComplete || r.Status != node.Granted {
				return
			}
			c.acks |= protocol.Of(p.server)
			if c.phase == completing && c.acks.Count() >= protocol.Quorum(in.Servers) {
				c.text += fmt.Sprintf("caller %d is confirmed that %s is completed\n", p.caller, p.req.Occurrence)
				if !strings.Contains(c.complete, p.req.Occurrence) {
					c.complete += p.req.Occurrence
				}
				c.leave()
			}
		})
	}
	if s.caller == len(in.Callers) {
		return
	}
	answered := 0
	for _, r := range s.replies {
		if r != nil {
			answered++
		}
	}
	if s.phase != checking || answered > 0 {
		step(fmt.Sprintf("caller %d crashes", s.caller), (*jobState).leave)
	}
	occurrence := in.Callers[s.caller : s.caller+1]
	for i := range s.servers {
		switch {
		case s.phase == checking && s.replies[i] == nil:
			step(fmt.Sprintf("node %d answers caller %d about %s", i, s.caller, occurrence), func(c *jobState) {
				r := c.do(i, node.Request{Op: node.OpCheck, Occurrence: occurrence})
				c.replies[i] = &r
			})
		case s.phase == reading && s.found.Sources.Has(i) && !s.read.Has(i):
			step(fmt.Sprintf("caller %d reads the records of node %d", s.caller, i), func(c *jobState) { in.read(c, i, occurrence) })
		}
	}
	if s.phase == checking && answered >= protocol.Quorum(in.Servers) {
		step(fmt.Sprintf("caller %d decides", s.caller), func(c *jobState) { in.decide(c, occurrence) })
	}
}

// read has a caller read the records of a node.
func (in *Jobs) read(s *jobState, i int, occurrence string) {
	r := s.do(i, node.Request{Op: node.OpRecords})
	if !r.Memory.Begun.Equal(s.replies[i].Memory.Begun) {
		s.leave() // it gives nobody records, and no more than that
		return
	}
	s.read |= protocol.Of(i)
	for _, x := range r.Memory.Records {
		if !slices.Contains(s.union, x.Occurrence) {
			s.union = append(s.union, x.Occurrence)
		}
	}
	slices.Sort(s.union)
	if s.read == s.found.Sources {
		in.run(s, occurrence)
	}
}

// leave ends the caller: it crashed, or is done. Its requests stay in flight.
func (s *jobState) leave() {
	s.caller, s.phase, s.read, s.found, s.union, s.acks = s.caller+1, checking, 0, protocol.Found{}, nil, 0
	s.replies = make([]*node.Reply, len(s.servers))
}

// decide is what a caller does with the answers.
func (in *Jobs) decide(s *jobState, occurrence string) {
	said := make([]protocol.Said, in.Servers)
	for i, r := range s.replies {
		if r != nil {
			said[i] = protocol.SaidBy(*r)
		}
	}
	s.found = protocol.Find(said, true)
	if in.AnyQuorum {
		s.found.Memory, s.found.Sources = protocol.Remembered, 0
	}
	switch {
	case s.found.Completed > 0:
		s.text += "it is completed, and is recorded on the others\n"
		in.record(s, occurrence)
	case s.found.Memory == protocol.Unsure:
		s.text += "it is unknown whether it is completed\n"
		s.leave()
	default:
		s.phase = reading
		if s.found.Sources == 0 {
			in.run(s, occurrence)
		}
	}
}

// run gives nodes the records that they lack, runs the occurrence, and records
// it.
func (in *Jobs) run(s *jobState, occurrence string) {
	var records []node.Record
	for _, o := range s.union {
		records = append(records, node.Record{Occurrence: o, Left: time.Hour})
	}
	for i, r := range s.replies {
		if r != nil && !r.Memory.Whole && !in.AnyQuorum {
			s.flight = append(s.flight, parcel{i, s.caller, node.Request{Op: node.OpAdopt,
				Adopt: &node.Adoption{Begun: r.Memory.Begun, Records: records, Whole: true, Since: r.Memory.Since}}})
		}
	}
	s.text += fmt.Sprintf("caller %d runs %s\n", s.caller, occurrence)
	if strings.Contains(s.complete, occurrence) {
		kept := 0
		for i, srv := range s.servers {
			if has := srv.Stored(lock); s.lost[i] == 0 || has != nil && !has.Records.Completed[occurrence].IsZero() {
				kept++
			}
		}
		switch {
		case s.found.Memory == protocol.Remembered:
			s.bad = "it ran again, by the word of nodes that forgot it"
		case kept >= in.Servers-protocol.Quorum(in.Servers)+1:
			s.bad = "it ran again, though enough nodes have kept their records"
		}
	}
	in.record(s, occurrence)
}

func (in *Jobs) record(s *jobState, occurrence string) {
	s.phase = completing
	for i := range s.servers {
		s.flight = append(s.flight, parcel{i, s.caller, node.Request{Op: node.OpComplete, Occurrence: occurrence}})
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
