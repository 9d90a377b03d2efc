package model

// Model is one instance: rules and bounds.
type Model struct {
	r         Rules
	b         Bounds
	z         sizes
	size      [MaxClients]int // of each client's list
	symmetric bool            // the first two clients can change places
	far       bool            // old tokens may matter
	seeds     Seeds
	// Seen counts the answers that nodes gave, and the leases that were had:
	// a model in which nothing happens holds, too.
	Seen Seen
}

// Seen is what happened in a search.
type Seen struct {
	Answers                             [answers]int
	Leases, Extended, Repaired, Lapsed  int
	EarlyExpiries, Restarts, Duplicates int
}

func (n *Seen) add(m *Seen) {
	for i := range m.Answers {
		n.Answers[i] += m.Answers[i]
	}
	n.Leases += m.Leases
	n.Extended += m.Extended
	n.Repaired += m.Repaired
	n.Lapsed += m.Lapsed
	n.EarlyExpiries += m.EarlyExpiries
	n.Restarts += m.Restarts
	n.Duplicates += m.Duplicates
}

// New returns the model of the rules, within the bounds.
func New(r Rules, b Bounds) *Model {
	m := &Model{r: r, b: b, z: sizesOf(r, b), seeds: NewSeeds()}
	m.symmetric = b.Clients >= 2 && b.Lists == [MaxClients]uint8{} && b.Tries[0] == b.Tries[1] && b.Extensions[0] == b.Extensions[1]
	m.far = r.NoWindow || r.LooseLower || r.NoFence
	for c := range b.Clients {
		m.size[c] = b.Nodes
		if b.Lists[c] != 0 {
			m.size[c] = 0
			for i := range b.Nodes {
				m.size[c] += int(b.Lists[c] >> i & 1)
			}
		}
	}
	return m
}

// Init returns the state in which everything begins: all nodes are trusted,
// nobody has asked for anything.
func (m *Model) Init() State {
	s := State{
		Top: none, Dups: uint8(m.b.Duplicates),
		Empty: uint8(m.b.EmptyStart), Stale: uint8(m.b.StaleStart), Flush: uint8(m.b.Flushes), Steps: uint8(m.b.Steps),
	}
	for c := range s.Clients {
		s.Clients[c].Floor = none
		for i := range s.Clients[c].Tokens {
			s.Clients[c].Tokens[i] = none
		}
	}
	for i := range m.list(&s) {
		n := &s.Nodes[i]
		n.Fence, n.Skew = none, m.b.Skew*unit
		if m.b.Fence != 0 {
			n.Fence, n.Kept = m.b.Fence, m.z.retention
		}
		for c := range m.b.Clients {
			if m.b.Lists[c] == 0 || m.b.Lists[c]>>i&1 == 1 {
				n.Member |= 1 << c
			}
		}
		if m.b.Former && n.Member&1 == 0 {
			n.Marked = MarkedNone
		}
	}
	return s
}

// Next calls emit with every step that is possible and what becomes of it.
func (m *Model) Next(s *State, emit func(Step, *State)) {
	if s.Bad != Fine {
		return
	}
	do := func(step Step, change func(t *State)) {
		t := *s
		change(&t)
		m.tidy(&t)
		emit(step, &t)
	}
	for i := range m.list(s) {
		for c := range m.b.Clients {
			m.deliveries(s, i, c, emit)
		}
	}
	for c := range m.b.Clients {
		m.choices(s, c, do)
	}
	for i := range m.list(s) {
		m.faults(s, i, do)
	}
	if !m.b.Frozen {
		do(Step{Kind: Tick}, m.tick)
	}
}

// choices are the steps of a client.
func (m *Model) choices(s *State, c int, do func(Step, func(*State))) {
	cl := &s.Clients[c]
	switch cl.Phase {
	case Idle:
		if int(cl.Try) < m.b.Tries[c] {
			m.proposals(s, none, func(t int8) {
				do(Step{Kind: Begin, Client: int8(c), Arg: t}, func(s *State) { m.begin(s, c, t) })
			})
		}
		return
	case Asking:
		if int(cl.Prop) < m.b.Again {
			m.proposals(s, m.latest(cl, cl.Try-1), func(t int8) {
				do(Step{Kind: Again, Client: int8(c), Arg: t}, func(s *State) { m.again(s, c, t) })
			})
		}
	case Holds:
		if int(cl.Exts) < m.b.Extensions[c] {
			do(Step{Kind: Extend, Client: int8(c)}, func(s *State) { m.beginExtension(s, c) })
		}
	}
	do(Step{Kind: End, Client: int8(c)}, func(s *State) { m.end(s, c) })
}

// proposals calls yield with every token that a client may propose instead of
// the last one.
func (m *Model) proposals(s *State, last int8, yield func(int8)) {
	raised := none
	if m.b.Raise {
		for i := range m.list(s) {
			if f := s.Nodes[i].Fence; f != none {
				raised = max(raised, f+1)
			}
		}
	}
	for _, t := range m.b.Proposals {
		if t != last {
			yield(t)
		}
		if t == raised {
			raised = none
		}
	}
	if raised != none && raised != last {
		yield(raised)
	}
}

// faults are the steps that nobody takes.
func (m *Model) faults(s *State, i int, do func(Step, func(*State))) {
	n := &s.Nodes[i]
	at := int8(i)
	if n.Key != 0 && n.Left <= m.z.drift {
		m.Seen.EarlyExpiries++
		do(Step{Kind: Expire, Node: at}, func(s *State) { s.Nodes[i].Key, s.Nodes[i].Left = 0, 0 })
	}
	if s.Empty > 0 {
		m.Seen.Restarts++
		do(Step{Kind: Empty, Node: at}, func(s *State) {
			s.Empty--
			m.forget(&s.Nodes[i], Disk{Fence: none})
		})
	}
	if s.Flush > 0 {
		do(Step{Kind: Flush, Node: at}, func(s *State) {
			s.Flush--
			sits := s.Nodes[i].Sits
			m.forget(&s.Nodes[i], Disk{Fence: none})
			if m.r.FlushKeepsMark {
				s.Nodes[i].Sits = sits
			}
		})
	}
	if s.Stale > 0 {
		if n.Saved.Saved {
			do(Step{Kind: OldData, Node: at}, func(s *State) {
				s.Stale--
				m.forget(&s.Nodes[i], s.Nodes[i].Saved)
			})
		} else {
			do(Step{Kind: Save, Node: at}, func(s *State) {
				s.Nodes[i].Saved = Disk{Saved: true, Key: n.Key, Left: n.Left, Fence: n.Fence, Kept: n.Kept}
			})
		}
	}
	if s.Steps > 0 && n.Skew > 0 {
		do(Step{Kind: ClockBack, Node: at}, func(s *State) {
			s.Steps--
			s.Nodes[i].Skew = -n.Skew
		})
	}
	if m.b.Former {
		m.operator(s, i, do)
	}
}

// operator takes the steps of a change of list: so many of the former nodes are
// barred that the rest are no quorum, and only then are the new ones marked. It
// may stop at any point. A client of the new list that finds a node of it marked
// marks those that carry no marker, be it for the sake of another lock.
func (m *Model) operator(s *State, i int, do func(Step, func(*State))) {
	n := &s.Nodes[i]
	old, agree := 0, false
	for j := range m.list(s) {
		switch s.Nodes[j].Marked {
		case MarkedOld:
			old++
		case MarkedNew:
			agree = true
		case MarkedBar:
			agree = agree || m.r.BarredAgrees
		}
	}
	to := n.Marked
	switch {
	case n.Marked == MarkedOld:
		to = MarkedBar
	case n.Marked == MarkedBar && n.Member&2 != 0 && old < m.quorum(0):
		to = MarkedNew
	case n.Marked == MarkedNone && (agree || old < m.quorum(0)):
		to = MarkedNew
	}
	if to == n.Marked {
		return
	}
	do(Step{Kind: Remark, Node: int8(i), Arg: int8(to)}, func(s *State) {
		n := &s.Nodes[i]
		n.Marked = to
		if !m.r.ListAtOnce {
			n.Sits = m.z.quarantine
		}
	})
}

// tick is time going on.
func (m *Model) tick(s *State) {
	for i := range m.list(s) {
		m.age(&s.Nodes[i])
	}
	s.Top = m.earlier(s.Top)
	for c := range m.b.Clients {
		cl := &s.Clients[c]
		cl.Floor = m.earlier(cl.Floor)
		for i := range cl.Tokens {
			cl.Tokens[i] = m.earlier(cl.Tokens[i])
		}
		if cl.Ext != 0 {
			cl.ExtAge = min(cl.ExtAge+1, m.b.TTL)
		}
		switch cl.Phase {
		case Asking:
			if cl.Elapsed = min(cl.Elapsed+1, m.z.validity); cl.Elapsed == m.z.validity && int(cl.Prop) == m.b.Again && !m.r.ValidityFromReply {
				m.end(s, c) // it cannot win any more
			}
		case Holds:
			if cl.Left--; cl.Left == 0 {
				m.Seen.Lapsed++
				m.lapse(s, c)
			}
		}
	}
}
