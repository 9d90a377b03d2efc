package explore

import (
	"slices"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file is the lease that is passed on inside a process: the first claim of
// the first client holds the lock, the second waits for it there, and a foreign
// client contends.

// passes are the steps by which a claim waits behind k, and gets the lease from
// it.
func (m *machine) passes(s *State, k int, do doer) {
	if k != 0 || s.claims[0] == nil || !s.claims[0].State().IsHeld() {
		return
	}
	w := s.claims[1]
	if w == nil {
		do(Step{Kind: Come, Claim: 1}, m.come)
		return
	}
	if s.left == 0 {
		do(Step{Kind: Leave, Claim: 1}, func(s *State) { s.claims[1], s.left = nil, 1 })
	}
	if s.claims[0].MayPass(view{m, s, 0}, w.waiter()) {
		do(Step{Kind: PassOn}, m.passOn)
	}
}

// waiter is a claim that waits in its process.
func (c *claim) waiter() protocol.Waiter {
	return protocol.Waiter{Came: c.came, Ticket: c.Ticket(), Config: c.Config()}
}

// come has a claim wait in its process.
func (m *machine) come(s *State) {
	cfg := m.cfg[0]
	cfg.NoWait = false
	s.claims[1] = &claim{Claim: protocol.NewClaim(view{m, s, 0}, cfg, m.values[1]), floor: s.top, came: s.now}
	for k := MaxTries; k < maxClaims; k++ {
		s.claims[1].ahead[k] = m.isQueued(s, k)
	}
	// What comes after it is sent after it.
	s.now++
	m.handle(s, 0, protocol.Event{Kind: protocol.LocalWaiters, Waiters: 1})
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

// passOn has the second claim go on with the lease of the first.
func (m *machine) passOn(s *State) {
	m.seen["pass"]++
	w := s.claims[1]
	m.handle(s, 0, protocol.Event{Kind: protocol.Pass, Waiter: w.waiter()})
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
