package model

// This file is the messages: each is carried out once, twice, late or never,
// and its answer is taken in at once, late or never.

// deliveries are the steps in which one node carries out what one client sent.
func (m *Model) deliveries(s *State, i, c int, emit func(Step, *State)) {
	n := &s.Nodes[i]
	for msg := int8(0); n.Msgs[c]>>msg != 0; msg++ {
		if n.Msgs[c]>>msg&1 == 0 {
			continue
		}
		t := *s
		t.Nodes[i].Msgs[c] &^= 1 << msg
		a := m.carryOut(&t, i, c, msg)
		m.Seen.Answers[a]++
		taken := t
		matters := m.takeIn(&taken, i, c, msg, a)
		step := Step{Client: int8(c), Node: int8(i), Arg: msg}
		out := func(kind Kind, r State) {
			step.Kind = kind
			m.tidy(&r)
			emit(step, &r)
		}
		out(Carry, taken)
		if matters {
			out(Lose, t)
			if late := lateOf(msg); m.b.LateReply && a != Absent && late != 0 {
				u := t
				u.Nodes[i].Got[c] |= late
				out(Delay, u)
			}
		}
		if s.Dups > 0 {
			m.Seen.Duplicates++
			u := taken
			u.Dups--
			u.Nodes[i].Msgs[c] |= 1 << msg
			out(Twice, u)
		}
	}
	if n.Got[c]&lateGrant != 0 {
		u := *s
		u.Nodes[i].Got[c] &^= lateGrant
		m.granted(&u, c, i)
		m.tidy(&u)
		emit(Step{Kind: Arrive, Client: int8(c), Node: int8(i)}, &u)
	}
	if n.Got[c]&lateExtend != 0 {
		u := *s
		u.Nodes[i].Got[c] &^= lateExtend
		m.extended(&u, c, i)
		m.tidy(&u)
		emit(Step{Kind: Arrive, Client: int8(c), Node: int8(i), Arg: 1}, &u)
	}
}

// lateOf is how an answer on its way is noted; 0 for messages whose answer does
// not matter.
func lateOf(msg int8) Got {
	switch {
	case msg < releaseAt:
		return lateGrant
	case msg == extendAt:
		return lateExtend
	}
	return 0
}

// tryOf says which attempt a message belongs to.
func (m *Model) tryOf(cl *Client, msg int8) uint8 {
	switch {
	case msg < releaseAt:
		return uint8(int(msg) / (1 + m.b.Again))
	case msg < extendAt:
		return uint8(msg - releaseAt)
	case msg == extendAt:
		return cl.Try - 1
	case msg < repairAt:
		return uint8(msg - extendOldAt)
	}
	return uint8(msg - repairAt)
}

// carryOut has a node do what it was sent.
func (m *Model) carryOut(s *State, i, c int, msg int8) Answer {
	n, cl := &s.Nodes[i], &s.Clients[c]
	try := m.tryOf(cl, msg)
	switch {
	case msg < releaseAt:
		return m.acquire(n, c, try, cl.Tokens[msg])
	case msg < extendAt:
		return m.release(n, c, try, m.latest(cl, try))
	case msg < repairAt:
		was := n.Key
		a := m.extend(n, c, try, m.latest(cl, try))
		if m.b.Created && n.Key != was {
			s.Bad = Created
		}
		return a
	}
	return m.repair(n, c, try, m.latest(cl, try))
}

// takeIn has a client take in an answer, and reports whether that mattered.
func (m *Model) takeIn(s *State, i, c int, msg int8, a Answer) bool {
	cl := &s.Clients[c]
	yes := a == Granted || a == Refreshed
	try, ok := cl.current()
	switch {
	case !ok || m.tryOf(cl, msg) != try:
		if msg >= repairAt && yes && !m.r.RepairStands {
			// The release may have come before it, to a fence that was higher.
			s.Nodes[i].Msgs[c] |= 1 << (releaseAt + m.tryOf(cl, msg))
			return m.b.LoseRepairs
		}
		return false
	case msg < releaseAt:
		latest := int(msg) == m.claim(try, cl.Prop) || m.r.MixedGrants
		if !yes || cl.Phase != Asking || !latest {
			return false
		}
		m.granted(s, c, i)
		if cl.Phase == Holds {
			m.Seen.Leases++
		}
		return true
	case msg == extendAt && yes:
		m.extended(s, c, i)
		if cl.Ext == 2 {
			m.Seen.Extended++
		}
		return true
	case msg == extendAt && a == Absent && m.b.Repairs:
		s.Nodes[i].Got[c] |= gotAbsent
		m.repairs(s, c)
		return true
	case msg >= repairAt && yes:
		m.Seen.Repaired++
		if m.r.RepairCounted && cl.Ext == 1 {
			m.extended(s, c, i)
			return true
		}
	}
	return false
}
