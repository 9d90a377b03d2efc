package model

// This file is what a client does: package protocol, as far as it decides
// anything here. A client may give up, release
// or extend at any time, so no time limit needs to be modelled.

// quorum is how many grants the client needs.
func (m *Model) quorum(c int) int {
	if m.r.HalfQuorum {
		return m.size[c] / 2
	}
	return m.size[c]/2 + 1
}

// claim is the number of a proposal among all of the client's.
func (m *Model) claim(try, prop uint8) int { return int(try)*(1+m.b.Again) + int(prop) }

// latest is the last token that was proposed in an attempt.
func (m *Model) latest(cl *Client, try uint8) int8 {
	t := none
	for p := 0; p <= m.b.Again; p++ {
		if q := cl.Tokens[m.claim(try, uint8(p))]; q != none {
			t = q
		}
	}
	return t
}

// current is the attempt that is not over.
func (cl *Client) current() (try uint8, ok bool) { return cl.Try - 1, cl.Phase != Idle }

func (m *Model) begin(s *State, c int, t int8) {
	cl := &s.Clients[c]
	cl.Try++
	cl.Prop = 0
	m.forgetAnswers(s, c, gotGrant|lateGrant)
	m.propose(s, c, t)
}

func (m *Model) again(s *State, c int, t int8) {
	s.Clients[c].Prop++
	if !m.r.MixedGrants {
		m.forgetAnswers(s, c, gotGrant|lateGrant)
	}
	m.propose(s, c, t)
}

// propose asks all nodes of the client's list at once.
func (m *Model) propose(s *State, c int, t int8) {
	cl := &s.Clients[c]
	cl.Phase, cl.Elapsed, cl.Floor = Asking, 0, s.Top
	q := m.claim(cl.Try-1, cl.Prop)
	cl.Tokens[q] = t
	m.send(s, c, 1<<(acquireAt+q))
}

func (m *Model) send(s *State, c int, msg Msgs) {
	for i := range m.list(s) {
		if n := &s.Nodes[i]; n.Member&(1<<c) != 0 {
			n.Msgs[c] |= msg
		}
	}
}

func (m *Model) forgetAnswers(s *State, c int, g Got) {
	for i := range m.list(s) {
		s.Nodes[i].Got[c] &^= g
	}
}

// end takes back whatever may stand under the current attempt.
func (m *Model) end(s *State, c int) {
	cl := &s.Clients[c]
	try := cl.Try - 1
	asking := cl.Phase == Asking
	cl.Phase, cl.Elapsed, cl.Left, cl.Floor, cl.Prop = Idle, 0, 0, none, 0
	m.endExtension(s, c, try)
	for i := range m.list(s) {
		n := &s.Nodes[i]
		if n.Member&(1<<c) != 0 && !(m.r.UndoGrantedOnly && asking && n.Got[c]&gotGrant == 0) {
			n.Msgs[c] |= 1 << (releaseAt + try)
		}
		n.Got[c] &^= gotGrant | lateGrant
	}
}

// endExtension has the answers of an extension round not count any more.
func (m *Model) endExtension(s *State, c int, try uint8) {
	cl := &s.Clients[c]
	cl.Ext, cl.ExtAge = 0, 0
	for i := range m.list(s) {
		n := &s.Nodes[i]
		if n.Msgs[c]&(1<<extendAt) != 0 {
			n.Msgs[c] = n.Msgs[c]&^(1<<extendAt) | 1<<(extendOldAt+try)
		}
		n.Got[c] &^= gotExtend | gotAbsent | lateExtend
	}
}

func (m *Model) beginExtension(s *State, c int) {
	cl := &s.Clients[c]
	m.endExtension(s, c, cl.Try-1)
	cl.Ext, cl.ExtAge = 1, 0
	cl.Exts++
	m.send(s, c, 1<<extendAt)
}

// granted counts the grant of one node, and takes the lease if that makes a
// quorum.
func (m *Model) granted(s *State, c, node int) {
	cl := &s.Clients[c]
	s.Nodes[node].Got[c] |= gotGrant
	left := m.z.validity - cl.Elapsed
	if m.r.ValidityFromReply {
		left = m.z.validity
	}
	if cl.Phase != Asking || left <= 0 || m.count(s, c, gotGrant) < m.quorum(c) {
		return
	}
	t := m.latest(cl, cl.Try-1)
	cl.Phase, cl.Left, cl.Elapsed = Holds, left, 0
	if cl.Floor != none && t <= cl.Floor {
		s.Bad = TokenOrder
	}
	s.Top = max(s.Top, t)
	cl.Floor = none
	m.exclusion(s, c)
	m.forgetAnswers(s, c, gotGrant|lateGrant)
}

func (m *Model) exclusion(s *State, c int) {
	for i := range s.Clients {
		if i != c && s.Clients[i].Phase == Holds {
			s.Bad = TwoHolders
		}
	}
}

// extended counts one node's word that it has extended.
func (m *Model) extended(s *State, c, node int) {
	cl := &s.Clients[c]
	s.Nodes[node].Got[c] |= gotExtend
	need := m.quorum(c)
	if m.r.ExtendByOne {
		need = 1
	}
	if cl.Ext != 1 || m.count(s, c, gotExtend) < need {
		return
	}
	cl.Ext = 2
	if left := m.z.validity - cl.ExtAge; left > 0 {
		cl.Left = max(cl.Left, left)
		if cl.Phase == Lapsed {
			cl.Phase = Holds
			m.exclusion(s, c)
		}
	}
	m.repairs(s, c)
}

// repairs sends a repair to the nodes that said they have no key, once a quorum
// has extended.
func (m *Model) repairs(s *State, c int) {
	cl := &s.Clients[c]
	if !m.b.Repairs || cl.Ext != 2 && !(m.r.RepairUnasked || m.r.RepairCounted) {
		return
	}
	for i := range m.list(s) {
		if n := &s.Nodes[i]; n.Got[c]&gotAbsent != 0 {
			n.Got[c] &^= gotAbsent
			n.Msgs[c] |= 1 << (repairAt + cl.Try - 1)
		}
	}
}

// lapse is a deadline that passes.
func (m *Model) lapse(s *State, c int) {
	if m.r.ExtendRevives && s.Clients[c].Ext == 1 {
		s.Clients[c].Phase = Lapsed
		return
	}
	m.end(s, c)
}
