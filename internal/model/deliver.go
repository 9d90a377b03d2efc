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

// tidy forgets what can make no difference any more, so that states which will
// go on alike are one, and looks for ghosts.
func (m *Model) tidy(s *State) {
	if s.Bad != Fine {
		return
	}
	for i := range m.list(s) {
		n := &s.Nodes[i]
		past := n.Skew - m.z.window // tokens below are refused, now and later
		if s.Steps > 0 {
			past = min(past, -n.Skew-m.z.window)
		}
		n.Fence, n.Kept = m.tidyFence(s, n.Fence, n.Kept, past)
		if d := &n.Saved; s.Stale == 0 {
			*d = Disk{}
		} else if d.Saved {
			d.Fence, d.Kept = m.tidyFence(s, d.Fence, d.Kept, past)
		}
		for c := range m.b.Clients {
			if n.Msgs[c] != 0 {
				m.tidyMsgs(s, n, c, past)
			}
		}
	}
	for c := range m.b.Clients {
		m.tidyTokens(s, c)
	}
	if s.Top < m.dead() && !m.far {
		s.Top = none
	}
	if m.b.NoGhosts {
		m.ghosts(s)
	}
}

// dead is below every token that a lease can be acquired with from now on.
func (m *Model) dead() int8 { return -unit * (m.b.Window + m.b.Skew + m.b.TTL + 1) }

// tidyFence forgets a fence that the window makes up for, and for how long yet
// one is kept that the window will make up for before it is forgotten.
func (m *Model) tidyFence(s *State, fence, kept, past int8) (int8, int8) {
	switch {
	case fence == none || m.far:
	case fence < past && !(m.b.Repairs && m.live(s, fence)):
		return none, 0
	case int(fence)-int(kept)*unit < int(past):
		return fence, always
	}
	return fence, kept
}

// live reports whether a repair may still come that asks whether a fence is
// just there.
func (m *Model) live(s *State, fence int8) bool {
	for c := range m.b.Clients {
		cl := &s.Clients[c]
		for try := range cl.Try {
			if m.latest(cl, try) == fence {
				return true
			}
		}
	}
	return false
}

// tidyMsgs drops a client's messages that would change nothing at the node, now
// or later.
func (m *Model) tidyMsgs(s *State, n *Node, c int, past int8) {
	cl := &s.Clients[c]
	for try := range cl.Try {
		v := m.value(c, try)
		if n.Key == v || n.Saved.Key == v || m.far || m.r.SameValue || n.Msgs[c]>>(repairAt+try)&1 != 0 {
			continue
		}
		may := false // an acquire may yet set the key
		for p := range m.b.Again + 1 {
			q := m.claim(try, uint8(p))
			if n.Msgs[c]>>(acquireAt+q)&1 == 0 {
				continue
			}
			if t := cl.Tokens[q]; t < past || t <= n.Fence && n.Kept == always && t < past+m.z.loss {
				n.Msgs[c] &^= 1 << (acquireAt + q)
			} else {
				may = true
			}
		}
		if may {
			continue
		}
		if !m.r.ExtendCreates {
			n.Msgs[c] &^= 1 << (extendOldAt + try)
		}
		if t := m.latest(cl, try); (t <= n.Fence || t < past) && !m.r.ReleaseUnchecked {
			n.Msgs[c] &^= 1 << (releaseAt + try)
		}
	}
}

// tidyTokens forgets the tokens of attempts that are over and of which nothing
// is on its way.
func (m *Model) tidyTokens(s *State, c int) {
	cl := &s.Clients[c]
	cur, ok := cl.current()
	if cl.Floor < m.dead() && !m.far {
		cl.Floor = none
	}
	for try := range cl.Try {
		if ok && try == cur {
			continue
		}
		var any Msgs
		for p := range m.b.Again + 1 {
			any |= 1 << (acquireAt + m.claim(try, uint8(p)))
		}
		any |= 1<<(releaseAt+try) | 1<<(extendOldAt+try) | 1<<(repairAt+try)
		for i := range m.list(s) {
			if s.Nodes[i].Msgs[c]&any != 0 {
				any = 0
				break
			}
		}
		if any != 0 {
			for p := range m.b.Again + 1 {
				cl.Tokens[m.claim(try, uint8(p))] = none
			}
		}
	}
}
