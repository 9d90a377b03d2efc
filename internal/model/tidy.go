package model

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
