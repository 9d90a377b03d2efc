package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is the time between two rounds: the claim takes the lock node by
// node, as they notify it, and yields to those before it in the queues.

// partialGrants has the grants of one token, collected over several requests.
type partialGrants struct {
	round     uint32 // the number of the round before it
	first     uint32 // the number of the first request that counts
	granted   Set
	requested Set     // requested, and not answered yet
	notified  Set     // of those, the ones that notified once more meanwhile
	stale     uint8   // how many answers in a row wanted a higher token
	start     Instant // before the first request was sent
	enough    When    // when the nodes that did not notify have had time to
}

const (
	// maxSplit is how many times the patience a minority of grants is kept
	// before all of it is given up.
	maxSplit = 3
	// leastPatience is how long the first node to notify may be ahead of the
	// others before these are asked, if a round takes very little time.
	leastPatience = 5 * time.Millisecond
)

// pause begins the time between two rounds, of at most delay.
func (c *Claim) pause(v View, t Tally, delay time.Duration, out *Ready) {
	if holder, _ := c.takenBy(); holder != c.wait.holder {
		c.wait.yielded, c.wait.holder = 0, 0
	}
	c.state = Waiting
	c.wait.until = v.Now() + delay
	c.partial = partialGrants{round: c.round.Seq, first: c.round.Seq, start: c.round.Start}
	if !t.Available() && c.cfg.Nodes > 1 {
		// Cut off from the other nodes, we would block everyone: we leave every
		// queue. A single round without a quorum may only have been too slow,
		// and the next one gets our old place back. After more of them we are
		// queued nowhere until we see a quorum.
		c.wait.queued = c.wait.queued && c.wait.missing <= maxMissing
		soon := c.random(v)
		if c.wait.quarantine.IsSet() {
			soon = 0 // the end of the quarantine is known, and the pause follows it
		}
		c.startOver(v, soon, out)
		return
	}
	c.giveWay(v, c.grants(), out)
	c.waitOn(v, out)
}

// waitOn handles what happened while the claim could not handle it, and begins
// the next round if it is time.
func (c *Claim) waitOn(v View, out *Ready) {
	c.distrust(v)
	for i := 0; i < c.cfg.Nodes && c.state == Waiting; i++ {
		if c.nodes[i].unapplied {
			c.nodes[i].unapplied = false
			c.applyReply(v, i, out)
		}
	}
	if c.state == Waiting && c.wait.until <= v.Now() {
		// All nodes are asked now. Handling earlier notifications would ask a
		// node twice.
		c.nextRound(v, out)
		return
	}
	if c.state == Waiting && c.wait.near {
		c.wait.near = false
		c.toFront(v)
	}
	for i := 0; i < c.cfg.Nodes && c.state == Waiting; i++ {
		if c.nodes[i].notified {
			c.nodes[i].notified = false
			c.requestFrom(v, i, out)
		}
	}
}

func (c *Claim) nextRound(v View, out *Ready) {
	if c.partial.granted == 0 {
		c.wait.split = When{}
	}
	c.begin(v, out)
}

// within makes the pause end in d at the latest.
func (c *Claim) within(v View, d time.Duration) { c.wait.until = min(c.wait.until, v.Now()+d) }

// startOver gives up the value, with all grants and places, and continues under
// a new one: after delay or, if that is 0, when the pause is over.
func (c *Claim) startOver(v View, delay time.Duration, out *Ready) {
	c.wait.split = When{}
	if delay > 0 {
		c.within(v, delay)
	}
	c.replace(v, Waiting, out)
}

// onWake handles a notification while the claim waits.
func (c *Claim) onWake(v View, e *Event, out *Ready) {
	c.fence = max(c.fence, e.Wake.Fence)
	if e.Wake.Kind == node.WakeNear {
		c.toFront(v)
		return
	}
	if AsksAtOnce(e.Wake.Kind) {
		c.toFront(v)
	}
	c.requestFrom(v, e.Node, out)
}

// noteWake stores a notification until the claim waits, which then handles it.
func (c *Claim) noteWake(e *Event) {
	c.fence = max(c.fence, e.Wake.Fence)
	if AsksAtOnce(e.Wake.Kind) || c.wait.waited && e.Wake.Kind != node.WakeNear {
		c.nodes[e.Node].notified = true
	}
	if AsksAtOnce(e.Wake.Kind) || e.Wake.Kind == node.WakeNear {
		c.wait.near = true
	}
}

// toFront records that the claim is one of the first two in a queue, or was called.
// From now on it may lose its place unless it renews it.
func (c *Claim) toFront(v View) {
	if !c.wait.front {
		c.wait.front = true
		c.within(v, pollMost)
	}
}

// requestFrom requests the lock from a node that notified us, or that may have.
func (c *Claim) requestFrom(v View, i int, out *Ready) {
	p, bit := &c.partial, Of(i)
	switch {
	case p.granted.Has(i):
		return
	case c.wait.yielded.Has(i):
		return // the next round sees whether its holder still has a quorum
	case p.requested.Has(i):
		p.notified |= bit // the answer in flight may be from before this
		return
	case p.granted|p.requested == 0:
		c.propose(v)
		if c.mayBeMoved() {
			c.replace(v, New, out)
			return
		}
		*p = partialGrants{first: c.seq + 1, start: v.Now(), stale: p.stale}
		c.wait.rounds++
	case c.fence >= c.token:
		c.nextRound(v, out) // all must be asked again, with a higher token
		return
	}
	p.requested |= bit
	c.sendAcquire(i, out)
}

// sendAcquire sends the acquisition to one node.
func (c *Claim) sendAcquire(i int, out *Ready) {
	c.note(Of(i))
	out.Send = append(out.Send, Message{Node: i, Seq: c.seq, Request: c.request(node.OpAcquire)})
}

// isLastReply reports whether an answer is to the last request to its node, and
// not from before the partial grants. Only that counts between two rounds.
func (c *Claim) isLastReply(e *Event) bool {
	return e.Op == node.OpAcquire && e.Seq >= c.partial.first && e.Seq == c.nodes[e.Node].seq
}

// onLateReply counts the answer of a node between two rounds.
func (c *Claim) onLateReply(v View, e *Event, out *Ready) {
	if !c.isLastReply(e) {
		return
	}
	before, _ := c.rank()
	c.see(e)
	c.distrust(v)
	c.applyReply(v, e.Node, out)
	if c.state != Waiting {
		return
	}
	if after, _ := c.rank(); before == 0 && after > 0 {
		c.within(v, c.delay(v))
	}
}

// applyReply counts the last answer of a node, which see has stored.
func (c *Claim) applyReply(v View, i int, out *Ready) {
	p := &c.partial
	switch {
	case c.nodes[i].seq < p.first:
		// Partial grants with a higher token have begun since. Grants of two
		// proposals are never counted together.
		return
	case c.nodes[i].seq == p.round:
		c.applyRoundReply(v, i, out)
	default:
		notified := p.notified.Has(i)
		p.requested &^= Of(i)
		p.notified &^= Of(i)
		c.applyOwnReply(v, i, notified, out)
	}
	if (c.state == Waiting || c.state == Yielding) && p.requested|p.granted == 0 {
		p.enough = When{}
	}
}

// applyRoundReply handles a late answer of the round before, which was not won.
func (c *Claim) applyRoundReply(v View, i int, out *Ready) {
	m := &c.nodes[i]
	switch {
	case m.got != Replied:
	case m.status == node.Granted:
		if c.countedTwice(i, c.partial.granted) {
			m.got = Unusable
			return
		}
		c.giveWay(v, Of(i), out)
	default:
		c.fence = max(c.fence, m.fence)
		if d, ok := c.lookIn(v, i); ok {
			c.within(v, d)
		}
	}
}

// applyOwnReply handles the answer of a node that was asked alone. notified says
// that it notified once more meanwhile.
func (c *Claim) applyOwnReply(v View, i int, notified bool, out *Ready) {
	p, m := &c.partial, &c.nodes[i]
	switch {
	case m.got != Replied:
	case m.status != node.Granted:
		c.fence = max(c.fence, m.fence)
		if d, ok := c.lookIn(v, i); ok {
			c.within(v, d)
		}
		c.requestRefused(v, i, notified, out)
	case c.countedTwice(i, p.granted):
		m.got = Unusable
	default:
		p.granted |= Of(i)
		p.stale = 0
		c.share.Slot, _ = c.agreed(p.granted) // the other nodes are asked for the same slot
		if !p.enough.IsSet() {
			p.enough = At(v.Now() + max(leastPatience, 4*c.round.Elapsed()))
		}
		c.maybeWin(v, out)
	}
}

// maybeWin makes the claim a lease if its partial grants are a quorum.
func (c *Claim) maybeWin(v View, out *Ready) {
	p := &c.partial
	if _, n := c.agreed(p.granted); n < Quorum(c.cfg.Nodes) {
		if slot, found := c.commonSlot(); found && p.granted.Count() >= Quorum(c.cfg.Nodes) {
			c.share.Slot = slot
			c.nextRound(v, out)
			return
		}
		return
	}
	// Only the grants of this token count; other nodes' answers are older.
	for j := range c.cfg.Nodes {
		if other := &c.nodes[j]; !p.granted.Has(j) && other.said(node.Granted) {
			other.got = Pending
		}
	}
	now := v.Now()
	c.round.Op, c.round.Start, c.round.End, c.round.Over, c.round.Won = node.OpAcquire, p.start, now, true, true
	out.News = append(out.News, RoundOver)
	if Validity(c.cfg.TTL, now-p.start) > 0 {
		c.win(v, p.start, out)
		return
	}
	c.verdict = GrantedLate
	c.nextRound(v, out)
}

// requestRefused handles a node that notified us and then did not grant. again
// says that it notified once more since.
func (c *Claim) requestRefused(v View, i int, again bool, out *Ready) {
	switch c.nodes[i].status {
	case node.Stale, node.Behind, node.Ahead:
		c.partial.stale++
		if c.partial.granted|c.partial.requested != 0 {
			c.nextRound(v, out)
			return
		}
		again = c.partial.stale < maxProposals // the next token will be higher
	}
	if again {
		c.requestFrom(v, i, out)
	}
}

// AsksAtOnce reports whether a waiter that is notified so has to ask the node at once.
func AsksAtOnce(k node.WakeKind) bool { return k == node.WakeTurn || k == node.WakeCall }
