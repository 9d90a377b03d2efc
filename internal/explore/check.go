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
	two := false
	for k := range s.claims {
		for other := range k {
			if s.valid(k) && s.valid(other) {
				m.seen.Together++
				two = two || conflict(s.claims[k].Share(), s.claims[other].Share())
			}
		}
	}
	switch {
	case two:
		s.bad = TwoLeases
	case s.bad == Fine && m.in.NoGhosts && m.orphaned(s):
		s.bad = Orphan
	}
}

// conflict reports whether leases with these shares must not be valid at once. It
// is written anew, and not the rule of node.Room that nodes go by.
func conflict(a, b node.Share) bool {
	bothRead := a.Mode == node.Shared && b.Mode == node.Shared
	twoSlots := a.Mode == node.Slotted && b.Mode == node.Slotted && a.Slots == b.Slots && a.Slot != b.Slot
	return !bothRead && !twoSlots
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
