package explore

import (
	"slices"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file is the local queue of the first client, and the lease that is passed on
// in it: the first claim asks, the second waits behind it, and a foreign client
// contends.

// passes are the steps of the callers in the local queue.
func (m *machine) passes(s *State, do doer) {
	first, w := s.claims[0], s.claims[1]
	switch {
	case first == nil:
	case w == nil:
		do(Step{Kind: Come, Claim: 1}, m.come)
	case w.State() == protocol.New && s.left == 0:
		do(Step{Kind: Leave, Claim: 1}, m.leave)
	}
	if s.unheard {
		do(Step{Kind: Hear}, func(s *State) {
			s.unheard = false
			m.inLine(s, s.line.Follow(&s.claims[0].Claim, protocol.LineNews{NotExtended: true}, nil))
		})
	}
	if first != nil && first.State().IsHeld() {
		line := s.line.Clone()
		if v := (view{m, s, 0}); len(line.Pass(v, &first.Claim, nil)) > 0 {
			do(Step{Kind: PassOn}, m.passOn)
		}
	}
}

// come joins the second claim to the local queue.
func (m *machine) come(s *State) {
	cfg := m.cfg[0]
	cfg.NoWait = false
	c := &claim{Claim: protocol.NewClaim(view{m, s, 0}, cfg, m.values[1]), floor: s.top, came: s.now}
	s.claims[1] = c
	for k := MaxTries; k < maxClaims; k++ {
		c.ahead[k] = m.isQueued(s, k)
	}
	// What comes after it is sent after it.
	s.now++
	m.inLine(s, s.line.Come(m.waiter(s, 1), nil))
}

// waiter is a claim that comes, as the line sees it.
func (m *machine) waiter(s *State, k int) *protocol.Waiter {
	c := s.claims[k]
	s.waits[k] = &protocol.Waiter{Came: c.came, Ticket: c.Ticket(), Config: c.Config(), Caller: k}
	return s.waits[k]
}

// leave ends the second claim before it asks.
func (m *machine) leave(s *State) {
	s.claims[1], s.left = nil, 1
	if s.let&2 != 0 {
		m.leaves(s, 1)
	} else {
		s.line.GiveUp(s.waits[1])
	}
}

// leaves takes a claim that was let in out of the line, if it has not left yet.
func (m *machine) leaves(s *State, k int) {
	if s.let>>k&1 != 0 {
		s.let &^= 1 << k
		m.inLine(s, s.line.Left(nil))
	}
}

// inLine executes effects of the line.
func (m *machine) inLine(s *State, out []protocol.LineEffect) {
	for _, e := range out {
		switch e.Kind {
		case protocol.LetIn:
			s.let |= 1 << e.Waiter.Caller.(int)
		case protocol.AskBeside:
			s.beside |= 1 << e.Waiter.Caller.(int)
		case protocol.Tell:
			m.handle(s, 0, protocol.Event{Kind: protocol.LocalWaiters, Waiters: e.Waiters})
		case protocol.LookAt:
			s.look = protocol.At(e.At)
		}
	}
}

// mayBegin reports whether a claim that is new may ask.
func (m *machine) mayBegin(s *State, k int) bool {
	return !m.in.Passes || m.client(k) != 0 || (s.let|s.beside)>>k&1 != 0
}

// followInLine tells the line what happened to a claim of the first client. One that
// gave up leaves it, and so does one whose lease nobody waits for.
func (m *machine) followInLine(s *State, k int, ready *protocol.Ready) {
	if !m.in.Passes || m.client(k) != 0 {
		return
	}
	c, news := &s.claims[k].Claim, ready.Line
	switch {
	case ready.Replaced, slices.Contains(ready.News, protocol.Refused):
		m.leaves(s, k)
	case slices.Contains(ready.News, protocol.Won):
		if !s.line.Won(s.now, c) {
			m.leaves(s, k)
			return
		}
		s.let &^= 1 << k
	}
	if news.NotExtended {
		s.unheard, news.NotExtended = true, false // a release may come first
	}
	m.inLine(s, s.line.Follow(c, news, nil))
}

// forsaken reports whether a claim waits in the line, and nobody asks, or has the
// lease that it waits for.
func (m *machine) forsaken(s *State) bool {
	first, w := s.claims[0], s.claims[1]
	return m.in.Passes && w != nil && w.State() == protocol.New && !m.mayBegin(s, 1) && first.over && first.State() == protocol.Gone
}

// isQueued reports whether a claim is in the queues of a quorum.
func (m *machine) isQueued(s *State, k int) bool {
	c, n := s.claims[k], 0
	if c == nil || c.over {
		return false
	}
	for i := range m.in.Servers {
		if slices.ContainsFunc(entry(s.servers[i]).Queue.Waiters, func(w node.Waiter) bool { return w.Value == c.Value() }) {
			n++
		}
	}
	return n >= protocol.Quorum(m.in.Servers)
}

// passOn gives the lease of the first claim to the second.
func (m *machine) passOn(s *State) {
	m.seen["pass"]++
	w := s.claims[1]
	out := s.line.Pass(view{m, s, 0}, &s.claims[0].Claim, nil)
	m.handle(s, 0, protocol.Event{Kind: protocol.Pass, Waiter: *out[0].Waiter, Waiters: out[0].Waiters})
	heir := &claim{Claim: s.claims[0].Claim, floor: w.floor, asked: w.asked}
	heir.Inherit(view{m, s, 0})
	s.claims[1] = heir
	if heir.Token() <= heir.floor {
		s.bad = TokenOrder
	}
	s.top, s.written = max(s.top, heir.Token()), max(s.written, heir.Token())
	for k, ahead := range w.ahead {
		if ahead && m.isQueued(s, k) {
			s.bad = Overtaken
		}
	}
	for i, msg := range s.messages {
		if msg.claim == 0 {
			own := *msg
			own.claim = 1
			s.messages[i] = &own
		}
	}
	for i := range s.wakes {
		if s.wakes[i].claim == 0 {
			s.wakes[i].claim = 1
		}
	}
}
