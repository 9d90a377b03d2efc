package explore

import (
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// Kind is what kind of thing happens, in words.
type Kind string

// The kinds of steps.
const (
	TimePasses Kind = "a tick passes"
	Begin      Kind = "WHO asks all nodes, with token TOKEN"
	Cancel     Kind = "WHO is cancelled"
	Extend     Kind = "WHO asks all nodes to extend"
	Downgrade  Kind = "WHO becomes a reader, and asks all nodes to extend"
	Release    Kind = "WHO releases the lock"
	Come       Kind = "WHO comes, and waits in its process"
	PassOn     Kind = "WHO passes the lease on"
	Hear       Kind = "WHO's line hears that the lease was not extended"
	Leave      Kind = "WHO leaves, and waits no longer"
	Deliver    Kind = "NODE executes WHO's OP: SAID"
	Lose       Kind = "NODE executes WHO's OP: SAID, and the answer is lost"
	Delay      Kind = "NODE executes WHO's OP: SAID, and the answer is late"
	Twice      Kind = "NODE executes WHO's OP: SAID, and will do so once more"
	Arrive     Kind = "NODE's answer reaches WHO late"
	Break      Kind = "WHO's connection to NODE breaks, with its OP in flight"
	Notify     Kind = "NODE notifies WHO"
	Miss       Kind = "NODE's notification of WHO is lost"
	Expire     Kind = "the key on NODE expires early, by a fast clock"
	Empty      Kind = "NODE restarts without its data"
	Save       Kind = "NODE saves its data"
	OldData    Kind = "NODE restarts with what it saved"
	Flush      Kind = "NODE is flushed"
	ClockBack  Kind = "the clock of NODE is set back"
	BreakUp    Kind = "an operator breaks the lock on NODE: SAID"
	Bar        Kind = "NODE is barred for the membership change"
	Mark       Kind = "NODE is marked for the new membership"
	MarkBy     Kind = "NODE is marked by a client of WHO's membership"
	Change     Kind = "the operator reads all markers"
	Stop       Kind = "the operator is stopped"
	Silence    Kind = "NODE does not answer the operator"
	Unheard    Kind = ", and the operator does not hear of it"
	Promote    Kind = "a replica without the last writes takes the place of NODE"
	FailBack   Kind = "NODE comes back as it was, in the place of the replica"
	MarkAgain  Kind = "NODE is marked again by a client that knows of the replica"
)

// Step is one thing that happens. Fields that a kind does not need are 0.
type Step struct {
	Kind   Kind
	Claim  int
	Server int
	Op     node.Op
	// Token of Begin is the one that is proposed, from now; when the operator reads, it is
	// the servers that do not answer, a bit each.
	Token int64
}

// Next calls emit with what becomes of every step that is possible.
func (m *machine) Next(s *State, emit func(*State)) {
	if s.bad != Fine {
		return
	}
	// do takes a step in every way that the claims' choices allow.
	do := func(step Step, change func(*State)) {
		for ch := (choice{}); ; {
			t := s.clone()
			t.step, t.choice = step, &ch
			change(t)
			if step.Kind == Begin {
				t.step.Token = int64(t.claims[step.Claim].Token()) - t.clock().UnixMicro()
			}
			if !t.skip {
				m.check(t)
				m.drop(t)
				emit(t)
			}
			if !ch.next() {
				return
			}
		}
	}
	m.deliveries(s, do)
	for c := range m.in.Clients {
		m.choices(s, c, do)
	}
	for i := range m.in.Servers {
		m.faults(s, i, do)
	}
	if m.changes() && !m.in.SameMembership {
		m.operate(s, do)
		for c := 0; c < m.in.Clients && !m.in.Later; c++ {
			m.marked(s, c, do)
		}
	}
	if !m.in.Frozen {
		do(Step{Kind: TimePasses}, m.tick)
	}
}

type doer func(Step, func(*State))

// choices are the steps that a client takes by itself.
func (m *machine) choices(s *State, c int, do doer) {
	first := c * MaxTries
	k := first
	for k < first+m.in.Tries[c] && s.claims[k] != nil && s.claims[k].over {
		k++
	}
	if k == first+m.in.Tries[c] {
		return
	}
	act := func(kind Kind, event protocol.EventKind) {
		do(Step{Kind: kind, Claim: k}, func(s *State) { m.handle(s, k, protocol.Event{Kind: event}) })
	}
	if m.in.Passes && c == 0 {
		m.passes(s, do)
	}
	switch cl := s.claims[k]; {
	case cl != nil && cl.State() == protocol.New:
		if m.mayBegin(s, k) {
			act(Begin, protocol.Begin)
		}
	case cl == nil:
		do(Step{Kind: Begin, Claim: k}, func(s *State) {
			s.claims[k] = &claim{Claim: protocol.NewClaim(view{m, s, c}, m.cfg[c], m.values[k])}
			if m.in.Passes && c == 0 {
				m.inLine(s, s.line.Come(m.waiter(s, k), nil))
			}
			m.handle(s, k, protocol.Event{Kind: protocol.Begin})
		})
	case cl.State().IsHeld():
		if cl.extensions < m.in.Extensions[c] {
			act(Extend, protocol.Extend)
		}
		if cl.downgrades < m.in.Downgrades[c] {
			act(Downgrade, protocol.Downgrade)
		}
		act(Release, protocol.Release)
	default:
		act(Cancel, protocol.Cancel)
	}
}

// handle hands an event to a claim, and does what it asks for.
func (m *machine) handle(s *State, k int, e protocol.Event) {
	cl := s.ownClaim(k)
	switch e.Kind {
	case protocol.Extend:
		cl.extensions++
	case protocol.Downgrade:
		cl.downgrades++
		m.seen["downgrade"]++
	}
	var ready protocol.Ready
	cl.Handle(view{m, s, m.client(k)}, &e, &ready)
	m.follow(s, k, &ready)
}

// follow does what is ready, in its order.
func (m *machine) follow(s *State, k int, ready *protocol.Ready) {
	cl := s.claims[k]
	over := cl.over
	for _, what := range ready.News {
		m.news(s, k, what)
	}
	m.seen["repair"] += ready.Repaired.Count()
	refused := uint32(0) // the round beyond the bound meets connections that are refused
	for i := range ready.Send {
		e := &ready.Send[i]
		if over && e.Request.Op != node.OpRelease {
			s.bad = Revived
		}
		if e.Request.Op == node.OpExtend {
			cl.broken = cl.Token() < s.broken && m.isBroken(s)
		}
		if r, _ := cl.Round(); e.Request.Op == node.OpAcquire && (e.Seq == r.Seq || e.Request.Token != cl.asked) {
			if i == 0 {
				cl.rounds++
				cl.floor, cl.asked = s.top, e.Request.Token
				if e.Request.Mode == node.Shared {
					cl.floor = s.written // readers have no order among themselves
				}
				if e.Request.Slot != 0 {
					m.seen["second slot that was asked for"]++
				}
			}
			if cl.rounds > m.in.Again+1 && !m.in.Waits {
				refused = e.Seq
				continue
			}
		}
		// What a release answers decides nothing but what is reported: one
		// without an answer is repeated, and stays here until it is executed.
		m.send(s, k, e, e.Request.Op != node.OpRelease || e.Request.Once)
	}
	for i := range ready.Undo {
		m.seen["undo"]++
		m.send(s, k, &ready.Undo[i], false)
	}
	if ready.Adopt {
		m.handle(s, k, protocol.Event{Kind: protocol.Configured})
	}
	if ready.AwaitMark {
		m.handle(s, k, protocol.Event{Kind: protocol.Marked})
	}
	m.followInLine(s, k, ready)
	if ready.Replaced {
		m.replace(s, k)
	}
	if refused != 0 {
		for i := range m.cfg[m.client(k)].Nodes {
			m.handle(s, k, protocol.Event{Kind: protocol.Answer, Node: i, Seq: refused, Op: node.OpAcquire, Fault: protocol.Unsent})
		}
	}
}

// news judges what an owner hears.
func (m *machine) news(s *State, k int, what protocol.News) {
	cl := s.claims[k]
	switch what {
	case protocol.Won:
		m.seen["lease"]++
		if cl.Token() <= cl.floor {
			s.bad = TokenOrder
		}
		s.top = max(s.top, cl.Token())
		if cl.Share().Mode != node.Shared {
			s.written = max(s.written, cl.Token())
		}
	case protocol.Extended:
		m.seen["extension"]++
		if cl.broken {
			s.bad = Unbroken
		}
	case protocol.YieldOver:
		m.seen["yield"]++
	case protocol.Refused, protocol.Ended:
		cl.over = true
		if what == protocol.Ended && cl.Cause() == protocol.Expired {
			m.seen["lease that expired"]++
		}
	}
}

// replace continues with the successor of a claim, if the instance has a value left
// for it.
func (m *machine) replace(s *State, k int) {
	cl := s.claims[k]
	cl.over = true
	if k%MaxTries+1 == m.in.Tries[m.client(k)] || m.in.Passes && m.client(k) == 0 {
		return
	}
	s.claims[k+1] = &claim{Claim: cl.Successor(m.values[k+1])}
	m.handle(s, k+1, protocol.Event{Kind: protocol.Resume})
}

// send puts a request in flight.
func (m *machine) send(s *State, k int, e *protocol.Message, awaited bool) {
	c := m.client(k)
	msg := &message{claim: k, node: e.Node, server: m.lists[c][e.Node], req: e.Request, sent: s.now, awaited: awaited}
	if awaited {
		msg.seq = e.Seq
	}
	msg.req.Name, msg.req.Retention, msg.req.Guard = lock, m.keep, m.guard[c]
	msg.req.Epoch = s.epoch(c, msg.server)
	if m.in.CachedMarker && s.trusts[c]>>msg.server&1 != 0 {
		msg.req.Guard = nil
	}
	if !awaited {
		// The same release, twice in flight, is one that is repeated.
		for _, other := range s.messages {
			if !other.awaited && other.claim == k && other.server == msg.server && other.req == msg.req {
				return
			}
		}
	}
	s.messages = append(s.messages, msg)
}
