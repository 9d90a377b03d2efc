package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is the time between two rounds: the claim takes the lock node by
// node, as they notify it, and yields to those before it in the queues.

// gathering has the grants of one token, collected over several requests.
type gathering struct {
	round   uint32 // the number of the round before it
	first   uint32 // the number of the first request that counts
	granted Set
	asked   Set     // asked, and not answered yet
	woken   Set     // of those, the ones that notified once more meanwhile
	stale   uint8   // how many answers in a row wanted a higher token
	start   Instant // before the first request was sent
	enough  Instant // when the nodes that did not notify have had time to; 0 for never
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
func (c *Claim) pause(v View, t Tally, delay time.Duration, out []Effect) []Effect {
	if holder, _ := c.takenBy(); holder != c.wait.holder {
		c.wait.left, c.wait.holder = 0, 0
	}
	c.state = Waiting
	c.wait.until = v.Now() + delay
	c.gather = gathering{round: c.round.Seq, first: c.round.Seq, start: c.round.Start}
	if !t.Available() && c.cfg.Nodes > 1 {
		// Cut off from the other nodes, we would block everyone: we leave every
		// queue. A single round without a quorum may only have been too slow,
		// and the next one gets our old place back. After more of them we are
		// queued nowhere until we see a quorum.
		c.wait.queued = c.wait.queued && c.wait.missing <= maxMissing
		return c.startOver(v, c.random(v), out)
	}
	return c.waitOn(v, c.giveWay(v, c.grants(), out))
}

// waitOn handles what happened while the claim could not handle it, and begins
// the next round if it is time.
func (c *Claim) waitOn(v View, out []Effect) []Effect {
	for i := 0; i < c.cfg.Nodes && c.idle(); i++ {
		if c.nodes[i].unseen {
			c.nodes[i].unseen = false
			out = c.takeIn(v, i, out)
		}
	}
	if c.idle() && c.wait.until <= v.Now() {
		// All nodes are asked now. Handling earlier notifications would ask a
		// node twice.
		return c.nextRound(v, out)
	}
	if c.idle() && c.wait.near {
		c.wait.near = false
		c.toFront(v)
	}
	for i := 0; i < c.cfg.Nodes && c.idle(); i++ {
		if c.nodes[i].offered {
			c.nodes[i].offered = false
			out = c.offered(v, i, out)
		}
	}
	return out
}

// idle reports that the claim waits, and is not yielding.
func (c *Claim) idle() bool { return c.state == Waiting && !c.yield.on }

// waitTimer is when the pause ends, or the yielding.
func (c *Claim) waitTimer() Instant {
	switch {
	case c.yield.on:
		return c.yield.until
	case c.gather.enough != 0:
		return max(min(c.wait.until, c.gather.enough), 1)
	}
	return max(c.wait.until, 1)
}

func (c *Claim) waitOver(v View, out []Effect) []Effect {
	if c.yield.on {
		return c.startOver(v, c.random(v)/4, out) // a node did not answer
	}
	return c.nextRound(v, out)
}

func (c *Claim) nextRound(v View, out []Effect) []Effect {
	if c.gather.granted == 0 {
		c.wait.split = 0
	}
	return c.begin(v, out)
}

// within makes the pause end in d at the latest.
func (c *Claim) within(v View, d time.Duration) { c.wait.until = min(c.wait.until, v.Now()+d) }

// startOver gives up the value, with all grants and places, and continues under
// a new one: after delay or, if that is 0, when the pause is over.
func (c *Claim) startOver(v View, delay time.Duration, out []Effect) []Effect {
	c.wait.split = 0
	if delay > 0 {
		c.within(v, delay)
	}
	return c.replace(v, Waiting, out)
}

// woken handles a notification.
func (c *Claim) woken(v View, e *Event, out []Effect) []Effect {
	c.fence = max(c.fence, e.Wake.Fence)
	m := &c.nodes[e.Node]
	switch {
	case c.state == Held:
		if e.Wake.Kind.Asks() && m.holds != granted {
			out = c.askOne(e.Node, out)
		}
	case c.state > Held:
	case e.Wake.Kind == node.WakeNear:
		if c.idle() {
			c.toFront(v)
		} else {
			c.wait.near = true
		}
	case c.idle():
		if e.Wake.Kind.Asks() {
			c.toFront(v)
		}
		return c.offered(v, e.Node, out)
	case e.Wake.Kind.Asks() || c.state == Waiting || c.wait.waited:
		m.offered = true
		c.wait.near = c.wait.near || e.Wake.Kind.Asks()
	}
	return out
}

// toFront records that the claim is one of the first two in a queue. From now
// on it loses its place unless it renews it.
func (c *Claim) toFront(v View) {
	if !c.wait.front {
		c.wait.front = true
		c.within(v, pollMost)
	}
}

// offered asks a node that notified us, or that may have.
func (c *Claim) offered(v View, i int, out []Effect) []Effect {
	g, bit := &c.gather, Of(i)
	switch {
	case g.granted.Has(i):
		return out
	case g.asked.Has(i):
		g.woken |= bit // the answer in flight may be from before this
		return out
	case g.granted|g.asked == 0:
		c.propose(v)
		if c.mayBeMoved() {
			return c.replace(v, New, out)
		}
		*g = gathering{first: c.seq + 1, start: v.Now(), stale: g.stale}
		c.wait.rounds++
	case c.token != 0 && c.fence >= c.token:
		return c.nextRound(v, out) // all must be asked again, with a higher token
	}
	g.asked |= bit
	return c.askOne(i, out)
}

// askOne sends the acquisition to one node.
func (c *Claim) askOne(i int, out []Effect) []Effect {
	c.note(Of(i))
	return append(out, Effect{Kind: Send, Node: i, Seq: c.seq, Request: c.request(node.OpAcquire)})
}

// taken counts the answer of a node between two rounds.
func (c *Claim) taken(v View, e *Event, out []Effect) []Effect {
	m := &c.nodes[e.Node]
	if e.Seq < c.gather.first || e.Seq != m.seq {
		return out // only the answer to the last request to a node counts
	}
	before, _ := c.rank()
	c.see(e)
	if c.yield.on {
		m.unseen = true
		return out
	}
	out = c.takeIn(v, e.Node, out)
	if !c.idle() {
		return out
	}
	if after, _ := c.rank(); before == 0 && after > 0 {
		c.within(v, c.delay(v))
	}
	return out
}

// takeIn counts the last answer of a node, which see has stored.
func (c *Claim) takeIn(v View, i int, out []Effect) []Effect {
	g := &c.gather
	switch {
	case c.nodes[i].seq < g.first:
		// A gathering with a higher token has begun since. Grants of two
		// proposals are never counted together.
		return out
	case c.nodes[i].seq == g.round:
		out = c.seenLate(v, i, out)
	default:
		woken := g.woken.Has(i)
		g.asked &^= Of(i)
		g.woken &^= Of(i)
		out = c.gathered(v, i, woken, out)
	}
	if c.state == Waiting && g.asked|g.granted == 0 {
		g.enough = 0
	}
	return out
}

// seenLate handles a late answer of the round before, which was not won.
func (c *Claim) seenLate(v View, i int, out []Effect) []Effect {
	m := &c.nodes[i]
	switch {
	case m.got != Replied:
	case m.status == node.Granted:
		if c.countedTwice(i, c.gather.granted) {
			m.got = Unusable
			return out
		}
		return c.giveWay(v, Of(i), out)
	default:
		c.fence = max(c.fence, m.fence)
		if d, ok := c.lookIn(v, i); ok {
			c.within(v, d)
		}
	}
	return out
}

// gathered handles the answer of a node that was asked alone.
func (c *Claim) gathered(v View, i int, woken bool, out []Effect) []Effect {
	g, m := &c.gather, &c.nodes[i]
	switch {
	case m.got != Replied:
		return out
	case m.status != node.Granted:
		c.fence = max(c.fence, m.fence)
		if d, ok := c.lookIn(v, i); ok {
			c.within(v, d)
		}
		return c.offerRefused(v, i, woken, out)
	case c.countedTwice(i, g.granted):
		m.got = Unusable
		return out
	}
	g.granted |= Of(i)
	g.stale = 0
	c.share.Slot, _ = c.agreed(g.granted) // the other nodes are asked for the same slot
	if g.enough == 0 {
		g.enough = v.Now() + max(leastPatience, 4*c.round.Elapsed())
	}
	return c.maybeWin(v, out)
}

// maybeWin ends the gathering if it is a quorum.
func (c *Claim) maybeWin(v View, out []Effect) []Effect {
	g := &c.gather
	if _, n := c.agreed(g.granted); n < Quorum(c.cfg.Nodes) {
		if slot, found := c.commonSlot(); found && g.granted.Count() >= Quorum(c.cfg.Nodes) {
			c.share.Slot = slot
			return c.nextRound(v, out)
		}
		return out
	}
	// Only the grants of this token count; other nodes' answers are older.
	for j := range c.cfg.Nodes {
		if other := &c.nodes[j]; !g.granted.Has(j) && other.got == Replied && other.status == node.Granted {
			other.got = Pending
		}
	}
	now := v.Now()
	c.round.Op, c.round.Start, c.round.End, c.round.Over, c.round.Won = node.OpAcquire, g.start, now, true, true
	out = append(out, Effect{Kind: RoundOver})
	if Validity(c.cfg.TTL, now-g.start) > 0 {
		return c.win(v, g.start, out)
	}
	c.verdict = GrantedLate
	return c.nextRound(v, out)
}

// offerRefused handles a node that notified us and then did not grant.
func (c *Claim) offerRefused(v View, i int, woken bool, out []Effect) []Effect {
	switch c.nodes[i].status {
	case node.Stale, node.Behind, node.Ahead:
		c.gather.stale++
		if c.gather.granted|c.gather.asked != 0 {
			return c.nextRound(v, out)
		}
		woken = c.gather.stale < maxProposals // the next token will be higher
	}
	if woken {
		return c.offered(v, i, out)
	}
	return out
}
