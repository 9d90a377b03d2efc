package explore

import (
	"github.com/redlatch/redlatch/internal/nodestate"
	"slices"

	"github.com/redlatch/redlatch/node"
)

// This file drops requests in flight that can make no difference any more. None
// of them is awaited by its claim. Where a rule is switched off on which an
// argument leans, the instance sets KeepAll.

func (m *machine) drop(s *State) {
	if m.in.KeepAll || s.bad != Fine {
		return
	}
	for i := range m.in.Servers {
		m.dropAt(s, i)
	}
	if s.old == 0 {
		s.saved = [MaxServers]*nodestate.Server{}
	}
}

func (m *machine) dropAt(s *State, i int) {
	e, holders := entry(s.servers[i]), s.holders(i)
	past := m.past(s, i)
	// floor is the highest of a writer, a slot or a release. If all locks are
	// exclusive, it is the fence.
	var fence, floor node.Token
	kept := false
	if e.FenceUntil.After(s.clockOf(i)) {
		left := e.FenceUntil.Sub(s.clockOf(i))
		fence, floor = e.Fence, e.Floor
		// The fence is not lost while tokens as high can be accepted. Nor is the
		// floor, which is not above it and is lost at the same time.
		kept = int64(fence)-left.Microseconds() < past && !m.loses()
	}
	// may is the values that a request may yet bring into the key, by claim.
	var may [maxClaims]bool
	for k, c := range s.claims {
		if c != nil {
			may[k] = has(holders, c.Value()) || has(entry(s.saved[i]).Holders, c.Value())
		}
	}
	useless := func(msg *message) bool {
		if msg.awaited || may[msg.claim] {
			return false
		}
		switch msg.req.Op {
		case node.OpAcquire:
			// Its token is behind the window for good, or at a fence that
			// stays; for a reader, at the floor. It does not have the key, so no
			// other case applies; and it does not wait, so it joins no queue.
			least := fence
			if msg.req.Mode == node.Shared {
				least = floor
			}
			return !msg.req.Wait && (int64(msg.req.Token) < past || msg.req.Token <= least && kept)
		case node.OpRepair:
			// It is too late.
			return !msg.req.Until.IsZero() && msg.req.Until.Before(s.clockOf(i)) && !(s.back > 0 && s.skew[i] > 0)
		}
		return false
	}
	s.messages = slices.DeleteFunc(s.messages, func(msg *message) bool { return msg.server == i && useless(msg) })
	// What acts on the claim's key alone is useless if nothing can set that.
	for _, msg := range s.messages {
		if msg.server == i && !msg.done && (msg.req.Op == node.OpAcquire || msg.req.Op == node.OpRepair) {
			may[msg.claim] = true
		}
	}
	s.messages = slices.DeleteFunc(s.messages, func(msg *message) bool {
		if msg.server != i || msg.awaited || may[msg.claim] || msg.req.Wait {
			return false
		}
		// The claim may repair the key as long as it is not over.
		if c := s.claims[msg.claim]; !c.over {
			return false
		}
		switch msg.req.Op {
		case node.OpExtend:
			return true
		case node.OpRelease:
			// It would not raise the floor, and so not the fence, to where it
			// matters. That it has a lower one be remembered for longer makes
			// the server refuse more.
			return msg.req.Token <= floor || int64(msg.req.Token) < past
		}
		return false
	})
}

// loses reports whether servers may lose fences.
func (m *machine) loses() bool { return m.in.EmptyStart+m.in.OldStart+m.in.Flushes > 0 }
