package explore

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file is the requests in flight: each is executed once, late, twice or
// never, and its answer arrives at once, late or never.

func (m *machine) deliveries(s *State, do doer) {
	for i, msg := range s.messages {
		step := Step{Claim: msg.claim, Server: msg.server, Op: msg.req.Op}
		as := func(k Kind) Step { step.Kind = k; return step }
		if msg.done {
			if msg.reply != nil {
				do(as(Arrive), func(s *State) {
					s.messages = slices.Delete(s.messages, i, i+1)
					m.answer(s, msg, *msg.reply)
				})
			}
			continue
		}
		do(as(Deliver), func(s *State) {
			s.messages = slices.Delete(s.messages, i, i+1)
			reply := m.execute(s, msg)
			if msg.awaited {
				m.answer(s, msg, reply)
				return
			}
			s.skip = m.refused(msg, reply)
		})
		if msg.awaited {
			do(as(Lose), func(s *State) {
				s.skip = m.refused(msg, m.execute(s, msg))
				lost := *msg
				lost.done = true
				s.messages[i] = &lost
			})
			if m.in.LateReply {
				do(as(Delay), func(s *State) {
					reply := m.execute(s, msg)
					late := *msg
					late.done, late.reply = true, &reply
					s.messages[i] = &late
				})
			}
			if m.in.Breaks {
				do(as(Break), func(s *State) { m.fail(s, i, protocol.Broken) })
			}
		}
		if s.dups > 0 {
			do(as(Twice), func(s *State) {
				s.dups--
				m.seen["duplicate"]++
				again := *msg
				again.awaited, again.seq = false, 0
				s.messages[i] = &again
				reply := m.execute(s, msg)
				if msg.awaited {
					m.answer(s, msg, reply)
				}
			})
		}
	}
	for i, w := range s.wakes {
		step := Step{Claim: w.claim, Server: m.lists[m.client(w.claim)][w.node]}
		step.Kind = Notify
		do(step, func(s *State) {
			s.wakes = slices.Delete(s.wakes, i, i+1)
			m.handle(s, w.claim, protocol.Event{Kind: protocol.Wake, Node: w.node, Wake: w.Wake})
		})
		step.Kind = Miss
		do(step, func(s *State) { s.wakes = slices.Delete(s.wakes, i, i+1) })
	}
}

// refused reports that a server refused a request, which changes nothing there.
// If the claim does not get the answer, either, that is as if the request were
// still in flight and is never executed: all that can happen then can also happen
// without this step.
func (m *machine) refused(msg *message, reply node.Reply) bool {
	return !m.in.KeepAll && !msg.req.Wait && msg.req.Op != node.OpRelease && msg.req.Op != node.OpYield && reply.Status != node.Granted
}

// execute does what a message asks for, on its server.
func (m *machine) execute(s *State, msg *message) node.Reply {
	if m.in.InOrder {
		m.overtake(s, msg)
	}
	had := has(s.holders(msg.server), msg.req.Value)
	srv := s.own(msg.server)
	reply, wakes := srv.Apply(s.clockOf(msg.server), msg.req)
	m.seen[reply.Status.String()]++
	s.said = reply.Status
	// That one server is not counted twice is not explored: no address leads
	// to another server here.
	reply.Server = ""
	if !m.in.Failback {
		reply.Epoch, reply.Lineage, reply.Epochs = 0, "", ""
	}
	if msg.req.Op == node.OpExtend && !m.in.MayCreate && !had && has(s.holders(msg.server), msg.req.Value) {
		s.bad = Created
	}
	if msg.req.Op == node.OpRepair && reply.Status == node.Stale && s.excludes(msg.claim) && !s.clockOf(msg.server).After(msg.req.Until) {
		s.bad = Unrepaired
	}
	if m.in.CachedMarker && reply.Status == node.Granted && msg.req.Op == node.OpAcquire {
		s.trusts[m.client(msg.claim)] |= 1 << msg.server
	}
	for _, w := range wakes {
		for k, cl := range s.claims {
			if cl != nil && cl.Value() == w.Value {
				m.seen["notification"]++
				n := slices.Index(m.lists[m.client(k)], msg.server)
				s.wakes = append(s.wakes, wake{k, n, w})
			}
		}
	}
	return reply
}

// overtake marks the acquisitions and repairs that the claim sent before this
// request, and that the server has not executed: they were sent again. A release
// is the last that a claim sends.
func (m *machine) overtake(s *State, msg *message) {
	release := msg.req.Op == node.OpRelease && !msg.req.Once
	for i, other := range s.messages {
		earlier := release || msg.awaited && other.seq < msg.seq
		asks := other.req.Op == node.OpAcquire || other.req.Op == node.OpRepair
		if earlier && asks && other.awaited && !other.done && !other.again && other.claim == msg.claim && other.server == msg.server {
			m.seen["request that was sent again"]++
			again := *other
			again.again = true
			s.messages[i] = &again
		}
	}
}

// answer hands a reply to the claim that waits for it.
func (m *machine) answer(s *State, msg *message, reply node.Reply) {
	e := answerTo(msg)
	// An answer takes time: the node's clock was read before it arrived.
	reply.Now = reply.Now.Add(-time.Microsecond)
	e.Reply = reply
	s.learn(m.client(msg.claim), msg.server, protocol.ShownBy(&reply.Marker))
	if reply.Status == node.Misconfigured {
		c := m.client(msg.claim)
		e.Misfit = protocol.Compare(*msg.req.Guard, reply.Guard, msg.req.TTL)
		s.returns[c] = max(s.returns[c], protocol.ReturnsFrom(m.guard[c], reply.Guard))
	}
	m.handle(s, msg.claim, e)
}

func answerTo(msg *message) protocol.Event {
	return protocol.Event{Kind: protocol.Answer, Node: msg.node, Seq: msg.seq, Op: msg.req.Op, Once: msg.req.Once, Token: msg.req.Token, Again: msg.again}
}

// fail ends the claim's wait for a message. One that was not executed
// stays in flight.
func (m *machine) fail(s *State, i int, why protocol.Fault) {
	msg := s.messages[i]
	if msg.done {
		s.messages = slices.Delete(s.messages, i, i+1)
	} else {
		late := *msg
		late.awaited, late.seq = false, 0
		s.messages[i] = &late
	}
	e := answerTo(msg)
	e.Fault, e.Again = why, false // a broken connection tells no order
	m.handle(s, msg.claim, e)
}

// tick has time pass. A claim stops waiting for an answer at the time limit, and
// its timers are on time: one that is late is a request that is.
func (m *machine) tick(s *State) {
	s.now += Tick
	for {
		i := slices.IndexFunc(s.messages, func(msg *message) bool { return msg.awaited && s.now-msg.sent >= m.limit })
		if i < 0 {
			break
		}
		m.fail(s, i, protocol.TimedOut)
	}
	if s.look.Reached(s.now) {
		s.look = protocol.When{}
		m.inLine(s, s.line.Look(s.now, nil))
	}
	for k := range s.claims {
		for range 3 {
			cl := s.claims[k]
			if cl == nil || cl.over && cl.State() != protocol.Releasing && !m.in.Waits && !m.in.NoGhosts {
				break
			}
			if !cl.Timer().Reached(s.now) {
				break
			}
			m.handle(s, k, protocol.Event{Kind: protocol.Timer})
		}
	}
}
