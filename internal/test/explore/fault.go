package explore

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file is what goes wrong with servers.

func (m *machine) faults(s *State, i int, do doer) {
	srv := s.servers[i]
	for _, h := range s.holders(i) {
		if h.Until.Sub(s.clockOf(i)) > protocol.Drift(m.cfg[0].TTL) {
			continue
		}
		do(Step{Kind: Expire, Server: i}, func(s *State) {
			m.seen["early expiry"]++
			e := s.own(i).Stored(lock)
			e.Holders = slices.DeleteFunc(e.Holders, func(other node.Holder) bool { return other.Value == h.Value })
		})
	}
	if s.empty > 0 {
		do(Step{Kind: Empty, Server: i}, func(s *State) {
			s.empty--
			m.restart(s, i, false)
		})
	}
	if s.flush > 0 {
		do(Step{Kind: Flush, Server: i}, func(s *State) {
			s.flush--
			s.own(i).Flush()
			m.mark(s, i)
		})
	}
	switch {
	case m.in.Failback:
		m.failover(s, i, do)
	case s.old > 0 && s.saved[i] == nil:
		do(Step{Kind: Save, Server: i}, func(s *State) { s.saved[i] = srv })
	case s.old > 0:
		do(Step{Kind: OldData, Server: i}, func(s *State) {
			s.old--
			s.servers[i], s.saved[i] = s.saved[i], nil
			m.restart(s, i, true)
		})
	}
	if s.back > 0 && s.skew[i] > 0 {
		do(Step{Kind: ClockBack, Server: i}, func(s *State) {
			s.back--
			by := time.Duration(-2*s.skew[i]) * Tick
			s.skew[i] = -s.skew[i]
			// Keys and fences expire by a clock that cannot be set. The
			// quarantine goes by the one that can.
			e := entry(s.own(i))
			for j := range e.Holders {
				e.Holders[j].Until = e.Holders[j].Until.Add(by)
			}
			e.FenceUntil = e.FenceUntil.Add(by)
			e.BreakUntil = e.BreakUntil.Add(by)
		})
	}
	if m.in.BreakUps && s.reached>>i&1 == 0 {
		do(Step{Kind: BreakUp, Server: i}, func(s *State) { m.breakUp(s, i) })
	}
	if m.in.SameMembership && m.changes() && s.servers[i].Marker.Guard.Membership == "" {
		// Nobody sees that there is a change. A new node is like any other.
		do(Step{Kind: Mark, Server: i}, func(s *State) {
			s.own(i).Mark(s.clockOf(i), node.MarkRequest{Mark: node.MarkFresh, Guard: m.guard[1]})
		})
	}
}

// breakUp executes an operator's break on a server, above all that there was when
// it began. It may never reach the others.
func (m *machine) breakUp(s *State, i int) {
	if s.broken == 0 {
		s.broken = m.highest(s) + 1
	}
	s.reached |= 1 << i
	reply, _ := s.own(i).Apply(s.clockOf(i), node.Request{
		Op: node.OpBreak, Name: lock, Fencing: node.Fencing{Token: s.broken, Window: m.cfg[0].Window, Retention: m.keep}, Guard: m.guard[0],
	})
	s.said = reply.Status
	if reply.Status == node.Granted {
		m.seen["break"]++
		s.freed |= 1 << i
	}
	if m.isBroken(s) {
		s.top, s.written = max(s.top, s.broken), max(s.written, s.broken)
	}
}

// isBroken reports whether a quorum has granted the break.
func (m *machine) isBroken(s *State) bool {
	return bits.OnesCount8(s.freed) >= protocol.Quorum(m.in.Servers)
}

// restart starts a server anew. The first client to notice marks it: here that
// is at once, since the quarantine then ends the soonest, and what the server
// refuses until it is marked may as well be late.
func (m *machine) restart(s *State, i int, keepData bool) {
	m.seen["restart"]++
	s.restarts++
	s.own(i).Restart(keepData, fmt.Sprint(s.restarts))
	if !m.changes() || keepData { // else the clients of both memberships may mark it
		m.mark(s, i)
	}
}

// mark writes a server's marker for the first client's membership.
func (m *machine) mark(s *State, i int) {
	s.servers[i].Mark(s.clockOf(i), node.MarkRequest{Mark: node.MarkWrite, Guard: m.guard[0]})
}
