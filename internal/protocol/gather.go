package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is the time between two rounds: the claim takes the lock node by
// node, as they offer it, and yields to those before it in the queues.

// gathering is the grants of one token, collected over several requests.
type gathering struct {
	round   uint32 // the number of the round before it
	first   uint32 // the number of the first request that counts
	granted Set
	asked   Set     // asked, and not answered yet
	woken   Set     // of those, the ones that offered the lock once more meanwhile
	stale   uint8   // so many answers in a row wanted a higher token
	start   Instant // before the first request was sent
	enough  Instant // when the nodes that offered nothing had time to; 0 for never
}

// yielding is a request to nodes to give up what the claim has there.
type yielding struct {
	on      bool
	op      node.Op
	nodes   Set // to which it was sent
	missing Set // of those, without an answer
	stale   Set // of those, that want a higher token
	kept    Set // where nobody else is waiting
	next    Set // where those before us turned out to be gone
	tries   uint8
	seq     uint32
	floor   node.Token
	until   Instant
	holder  name // OpRelease: to whom the nodes are left
}

const (
	// maxSplit is for how many times the patience a minority of grants is kept
	// before all of it is given up.
	maxSplit = 3
	// leastPatience is how long the first node to offer the lock may be ahead of
	// the others before these are asked, if a round takes next to no time.
	leastPatience = 5 * time.Millisecond
)

// pause begins the time between two rounds, for delay at the most.
func (c *Claim) pause(v View, t Tally, delay time.Duration, out []Effect) []Effect {
	if holder, _ := c.takenBy(); holder != c.wait.holder {
		c.wait.left, c.wait.holder = 0, 0
	}
	c.state = Waiting
	c.wait.until = v.Now() + delay
	c.gather = gathering{round: c.round.Seq, first: c.round.Seq, start: c.round.Start}
	if !t.Available() && c.cfg.Nodes > 1 {
		// Cut off from the others, we would be in everyone's way: we leave every
		// queue. A single missed round may be for want of time alone, and the
		// next one has our old place back. After more of them we are queued
		// nowhere until we see a quorum.
		c.wait.queued = c.wait.queued && c.wait.missing <= maxMissing
		return c.startOver(v, c.random(v), out)
	}
	return c.waitOn(v, c.giveWay(v, c.grants(), out))
}

// waitOn goes on with what happened while the claim could not see to it, and
// begins the next round if it is time.
func (c *Claim) waitOn(v View, out []Effect) []Effect {
	for i := 0; i < c.cfg.Nodes && c.idle(); i++ {
		if c.nodes[i].unseen {
			c.nodes[i].unseen = false
			out = c.takeIn(v, i, out)
		}
	}
	if c.idle() && c.wait.until <= v.Now() {
		// All are asked now. Offers that came meanwhile would have a node asked
		// twice.
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

// within has the pause end no later than in d.
func (c *Claim) within(v View, d time.Duration) { c.wait.until = min(c.wait.until, v.Now()+d) }

// startOver gives up the value, with all grants and places, and goes on under a
// new one: after delay or, if that is 0, when the pause is over.
func (c *Claim) startOver(v View, delay time.Duration, out []Effect) []Effect {
	c.wait.split = 0
	if delay > 0 {
		c.within(v, delay)
	}
	return c.replace(v, Waiting, out)
}

// woken takes in a notification.
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

// toFront notes that the claim is one of the first two in a queue. It loses its
// place from now on unless it renews it.
func (c *Claim) toFront(v View) {
	if !c.wait.front {
		c.wait.front = true
		c.within(v, pollMost)
	}
}

// offered asks a node that offers the lock, or that may have.
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

// takeIn counts the last answer of a node, which was kept by see.
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

// seenLate takes in a late answer of the round before, which was not won.
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

// gathered takes in the answer of a node that was asked by itself.
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
	if g.enough == 0 {
		g.enough = v.Now() + max(leastPatience, 4*c.round.Elapsed())
	}
	return c.maybeWin(v, out)
}

// maybeWin ends the gathering if it is a quorum.
func (c *Claim) maybeWin(v View, out []Effect) []Effect {
	g := &c.gather
	if g.granted.Count() < Quorum(c.cfg.Nodes) {
		return out
	}
	// The grants of this token alone count; other nodes' answers are older.
	for j := range c.cfg.Nodes {
		if other := &c.nodes[j]; !g.granted.Has(j) && other.got == Replied && other.status == node.Granted {
			other.got = Pending
		}
	}
	now := v.Now()
	c.round.Op, c.round.Start, c.round.End, c.round.Over = node.OpAcquire, g.start, now, true
	out = append(out, Effect{Kind: RoundOver})
	if Validity(c.cfg.TTL, now-g.start) > 0 {
		return c.win(v, g.start, out)
	}
	c.verdict = GrantedLate
	return c.nextRound(v, out)
}

// offerRefused sees to a node that offered the lock and then did not grant it.
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

// giveWay sees to grants of a round that was not won, so that two callers with a
// minority each do not wait for each other.
func (c *Claim) giveWay(v View, grants Set, out []Effect) []Effect {
	now := v.Now()
	switch {
	case grants == 0:
		return out
	case !c.inQueues():
		// There is no queue, and chance must settle it.
		return c.startOver(v, 0, out)
	case c.wait.split != 0 && now-c.wait.split >= maxSplit*c.cfg.Patience:
		return c.startOver(v, c.random(v)/4, out)
	}
	op := node.OpOffer
	holder, taken := c.takenBy()
	if taken {
		// These nodes are of no use to us. The holder is to have them too, so
		// that it outlives the loss of others.
		op = node.OpRelease
	}
	c.yield = yielding{on: true, op: op, nodes: grants, holder: holder, floor: max(c.token, c.above)}
	return c.sendYield(v, grants, out)
}

// sendYield asks nodes to give up what the claim has there.
//
// A copy of such a request that comes later, from a driver or proxy that repeats
// what it had no answer to, must not free what the value has been granted since.
// So it has a token of its own, above those before it and below those after. One
// that is not above the fence changes nothing, and is repeated with a higher
// token: reporting the fence is all that a node may do with it, now or later.
func (c *Claim) sendYield(v View, nodes Set, out []Effect) []Effect {
	y := &c.yield
	req := c.request(y.op)
	req.Once = true
	if req.Token != 0 {
		// No higher than it must be: others may have proposed meanwhile, and are
		// not to find themselves stale.
		req.Token = y.floor + 1
		c.above = req.Token
	}
	c.seq++
	y.seq, y.missing, y.stale, y.until = c.seq, nodes, 0, v.Now()+c.cfg.Limit
	y.tries++
	suspects := v.Suspects()
	for i := range c.cfg.Nodes {
		if !nodes.Has(i) {
			continue
		}
		suspect := suspects.Has(i)
		if suspect && !v.Probe(i) {
			return c.startOver(v, c.random(v)/4, out)
		}
		out = append(out, Effect{Kind: Send, Node: i, Seq: c.seq, Request: req, Probe: suspect})
	}
	return out
}

// yielded takes in the answer to a request with Once.
func (c *Claim) yielded(v View, e *Event, out []Effect) []Effect {
	y, bit := &c.yield, Of(e.Node)
	if c.state != Waiting || !y.on || e.Seq != y.seq || y.missing&bit == 0 {
		return out
	}
	y.missing &^= bit
	switch {
	case e.Fault != NoFault || e.Reply.Status == node.Ahead:
		// It may free the lock there at any later time. Nothing can be built on
		// this value any more.
		return c.startOver(v, c.random(v)/4, out)
	case e.Reply.Status == node.Stale:
		y.stale |= bit
		y.floor = max(y.floor, e.Reply.Fence)
	case y.op == node.OpRelease:
	case e.Reply.Status == node.Granted:
		y.kept |= bit
	case e.Reply.Status == node.Reserved && e.Reply.Rank == 1:
		y.next |= bit
	}
	switch {
	case y.missing != 0:
		return out
	case y.stale == 0:
		return c.yieldOver(v, out)
	case y.tries == maxProposals || y.floor > c.plausible(v):
		return c.startOver(v, c.random(v)/4, out)
	}
	return c.sendYield(v, y.stale, out)
}

// yieldOver goes on waiting after every node has answered.
func (c *Claim) yieldOver(v View, out []Effect) []Effect {
	c.yield.on = false
	y := c.yield
	out = append(out, Effect{Kind: YieldOver})
	for i := range c.cfg.Nodes {
		if y.nodes.Has(i) && !y.kept.Has(i) {
			c.nodes[i].holds = leftover
		}
	}
	if y.op == node.OpRelease {
		if c.wait.holder != y.holder {
			c.wait.left, c.wait.holder = 0, y.holder
		}
		c.wait.left |= y.nodes
		return c.waitOn(v, out)
	}
	c.gather.granted |= y.kept
	if y.kept != 0 {
		out = c.maybeWin(v, out)
	}
	// Where those before us turned out to be gone, the lock is ours to ask for.
	for i := range c.cfg.Nodes {
		if y.next.Has(i) && c.idle() {
			out = c.offered(v, i, out)
		}
	}
	if y.kept != 0 && c.idle() {
		if c.wait.split == 0 {
			c.wait.split = v.Now()
		}
		c.within(v, c.cfg.Patience)
	}
	if !c.idle() {
		return out
	}
	return c.waitOn(v, out)
}

// Yield describes the last yielding: the request, and what came of it.
func (c *Claim) Yield() (node.Op, Tally) {
	y := &c.yield
	return y.op, Tally{Nodes: c.cfg.Nodes, Granted: y.kept.Count(), Refused: (y.nodes &^ y.kept).Count()}
}
