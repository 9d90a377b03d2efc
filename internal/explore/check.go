package explore

import (
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// check looks for what must not be. Token order and keys that extensions create
// are seen where they happen.
func (m *machine) check(s *State) {
	if s.bad != Fine && s.bad != TokenOrder {
		return
	}
	valid := 0
	for k := range s.claims {
		if s.valid(k) {
			valid++
		}
	}
	switch {
	case valid > 1:
		s.bad = TwoLeases
	case s.bad == Fine && m.in.NoGhosts && m.orphaned(s):
		s.bad = Orphan
	}
}

// orphaned reports whether a server has the key of a claim that is over, and
// nothing is in flight or owed that would remove it: a release, or an answer
// after which the claim sends one.
func (m *machine) orphaned(s *State) bool {
	for i := range m.in.Servers {
		holders := s.holders(i)
		if len(holders) == 0 {
			continue
		}
		for k, cl := range s.claims {
			if cl == nil || !cl.over || !has(holders, cl.Value()) || cl.Cause() == protocol.WasDetached {
				continue
			}
			owed := false
			for _, msg := range s.messages {
				if msg.claim == k && msg.server == i && (msg.awaited && msg.req.Op != node.OpExtend || msg.req.Op == node.OpRelease && !msg.req.Once) {
					owed = true
				}
			}
			if !owed {
				return true
			}
		}
	}
	return false
}
