package explore

import (
	"slices"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/exclusion"
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
			if s.excludes(k) && s.excludes(other) {
				m.seen["lease beside another"]++
				two = two || exclusion.Conflict(s.claims[k].Share(), s.claims[other].Share())
			}
		}
	}
	switch {
	case two:
		s.bad = TwoLeases
	case s.bad == Fine && m.forsaken(s):
		s.bad = Forsaken
	case s.bad == Fine && m.in.NoGhosts:
		s.bad = m.orphaned(s)
	}
}

// orphaned reports whether a server has the key of a claim that is over, or a
// place in its queue, and nothing is in flight or owed that would remove it: a
// release, or an answer after which the claim sends one.
func (m *machine) orphaned(s *State) (bad Violation) {
	for i := range m.in.Servers {
		holders, waiters := s.holders(i), entry(s.servers[i]).Queue.Waiters
		for k, cl := range s.claims {
			if cl == nil || !cl.over || cl.Cause() == protocol.WasDetached || cl.Cause() == protocol.WasPassed || cl.State() == protocol.Releasing {
				continue // a claim that is Releasing undoes it when that is over
			}
			key := has(holders, cl.Value())
			if !key && !slices.ContainsFunc(waiters, func(w node.Waiter) bool { return w.Value == cl.Value() }) {
				continue
			}
			owed := slices.ContainsFunc(s.messages, func(msg *message) bool {
				return msg.claim == k && msg.server == i && (msg.awaited && msg.req.Op != node.OpExtend || msg.req.Op == node.OpRelease && !msg.req.Once)
			})
			switch {
			case owed:
			case key:
				return Orphan
			default:
				bad = OrphanedPlace
			}
		}
	}
	return bad
}
