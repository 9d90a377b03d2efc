package model

// ghosts looks for a key whose claim is over, on a node to which nothing is on
// its way that could take it back.
func (m *Model) ghosts(s *State) {
	for i := range m.list(s) {
		n := &s.Nodes[i]
		if n.Key == 0 {
			continue
		}
		c, try := int((n.Key-1)>>2), (n.Key-1)&3
		if cur, ok := s.Clients[c].current(); ok && cur == try {
			continue
		}
		if n.Msgs[c]>>(releaseAt+try)&1 == 0 {
			s.Bad = Ghost
		}
	}
}
