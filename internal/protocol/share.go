package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is for locks with several holders: which slot a claim takes, and
// how a writer becomes a reader.
//
// A node gives a claim the slot that it asks for, or the lowest that is free. A
// majority is counted among grants of one slot. If the nodes gave different
// slots, the claim asks for the one that most of them can give. A claim that
// has won never moves: a node that gave it another slot is repaired.

// Share returns what the claim asks for or holds, with its slot.
func (c *Claim) Share() node.Share { return c.share }

// agreed returns the slot that most of the nodes have granted, and how many.
// All of them granted, if the claim has no slots.
func (c *Claim) agreed(nodes Set) (slot uint8, n int) {
	if c.share.Mode != node.Slotted {
		return 0, nodes.Count()
	}
	var count [node.MaxSlots]uint8
	for i := range c.cfg.Nodes {
		if m := &c.nodes[i]; nodes.Has(i) && m.got == Replied && m.status == node.Granted {
			count[m.share.Slot]++
		}
	}
	for s := range c.share.Slots {
		if int(count[s]) > n {
			slot, n = s, int(count[s])
		}
	}
	return slot, n
}

// counts reports whether a grant counts towards the round: a grant of another
// slot does not.
func (c *Claim) counts(m *member, slot uint8) bool {
	return c.share.Mode != node.Slotted || c.round.Op != node.OpAcquire || m.share.Slot == slot
}

// commonSlot returns the slot that most nodes have given or can give, if they
// are a quorum and gave different ones, and if they can be asked to change it.
func (c *Claim) commonSlot() (slot uint8, found bool) {
	if c.share.Mode != node.Slotted {
		return 0, false
	}
	best, bestGiven := 0, 0
	for s := range c.share.Slots {
		can, given := 0, 0
		for i := range c.cfg.Nodes {
			switch m := &c.nodes[i]; {
			case m.got != Replied || m.status != node.Granted:
			case m.share.Slot == s:
				can, given = can+1, given+1
			case m.free.Has(s):
				can++
			}
		}
		if given > 0 && (can > best || can == best && given > bestGiven) {
			slot, best, bestGiven = s, can, given
		}
	}
	return slot, best >= Quorum(c.cfg.Nodes) && bestGiven < best
}

// uncross returns how long to wait if a quorum had room for us, and still gave us
// no slot in common: others have the slots that we lack, and lack those that we
// have, or their tokens were ahead of ours each time. There is room for all of
// us, so the wait is a few round trips, and longer each time. Otherwise it
// returns 0: the whole delay.
func (c *Claim) uncross(v View) time.Duration {
	room := c.isQuorum(func(m *member) bool { return m.said(node.Granted) || m.said(node.Stale) })
	if c.share.Mode != node.Slotted || !room {
		return 0
	}
	trip := c.round.Elapsed() + time.Millisecond
	return min(trip+v.Random(4*trip*time.Duration(min(c.wait.rounds, 16))), c.random(v))
}

// mayBeMoved reports whether an earlier request of ours, with a higher token
// than the present one, may still be executed: our clock was corrected in
// between. It would move the claim to the slot that it asked for, even after we
// have won. So this value cannot be used any more.
func (c *Claim) mayBeMoved() bool {
	return c.share.Mode == node.Slotted && (c.inFlight > 0 || c.unsure != 0) && max(c.earlier.most, c.proposed) > c.token
}

// takeSlot makes the slot that a quorum granted the lease's own.
func (c *Claim) takeSlot() {
	if c.share.Mode == node.Slotted && c.round.Op == node.OpAcquire {
		c.share.Slot, _ = c.agreed(c.all())
	}
}

// misplaced reports whether a node has given the lease another slot.
func (c *Claim) misplaced(s node.Share) bool {
	return c.share.Mode == node.Slotted && s.Mode == node.Slotted && s.Slot != c.share.Slot
}

// otherSlots returns the number of slots of the holders, if a quorum of nodes
// has holders with another number than ours.
func (c *Claim) otherSlots() (slots uint8, found bool) {
	n := 0
	for i := range c.cfg.Nodes {
		m := &c.nodes[i]
		if m.got == Replied && m.status == node.Held && c.share.Mode == node.Slotted &&
			m.share.Mode == node.Slotted && m.share.Slots != c.share.Slots {
			slots, n = m.share.Slots, n+1
		}
	}
	return slots, n >= Quorum(c.cfg.Nodes)
}

// OtherSlots returns the number of slots of the present holders, after the
// verdict BadSlots.
func (c *Claim) OtherSlots() int {
	slots, _ := c.otherSlots()
	return int(slots)
}

// heldByReaders reports whether readers hold a quorum of nodes. They count as
// one holder, although no two nodes may name the same reader.
func (c *Claim) heldByReaders() bool {
	return c.share.Mode != node.Shared &&
		c.isQuorum(func(m *member) bool { return m.said(node.Held) && m.share.Mode == node.Shared })
}

// fitsBesideHolders reports whether a node has room for us beside its holders, so
// that only the waiters before us keep us out.
func (c *Claim) fitsBesideHolders() bool {
	return c.where(func(m *member) bool {
		return m.said(node.Held) && m.share.Mode == c.share.Mode && (c.share.Mode == node.Shared || m.free != 0)
	}) != 0
}

// becomeReader makes a writer a reader. Each node learns it with an extension.
func (c *Claim) becomeReader() {
	if c.share.Mode == node.Exclusive {
		c.share.Mode = node.Shared
	}
}
