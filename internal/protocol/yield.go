package protocol

import "github.com/redlatch/redlatch/node"

// This file yields what a claim holds without a majority to those before it in
// the queues.

// yielding is a request to nodes to free what the claim has there.
type yielding struct {
	op      node.Op
	nodes   Set // nodes to which it was sent
	missing Set // of those, the ones without an answer
	stale   Set // of those, the ones that want a higher token
	ours    Set // where nobody else waits: the grant stays
	next    Set // where those before us are gone
	tries   uint8
	seq     uint32
	holder  hash // OpRelease: the holder that gets the nodes
	floor   node.Token
	until   Instant
}

// giveWay handles the grants of a round that was not won, so that two callers
// with a minority each do not wait for each other.
func (c *Claim) giveWay(v View, grants Set, out *Ready) {
	now := v.Now()
	switch {
	case grants == 0:
		return
	case !c.inQueues():
		// There is no queue: a random delay has to resolve it.
		c.startOver(v, c.uncross(v), out)
		return
	case c.wait.split.IsSet() && now-c.wait.split.Or(now) >= maxSplit*c.cfg.Patience:
		c.startOver(v, c.random(v)/4, out)
		return
	}
	op := node.OpYield
	holder, taken := c.takenBy()
	if taken {
		// These nodes are of no use to us. The holder should get them too, so
		// that its lock survives the loss of others.
		op = node.OpRelease
	}
	c.state = Yielding
	c.yield = yielding{op: op, nodes: grants, holder: holder, floor: max(c.token, c.above)}
	c.sendYield(v, grants, out)
}

// sendYield asks nodes to free what the claim has there.
//
// A late copy of such a request, from a driver or proxy that repeats requests
// without an answer, must not free what the value has been granted since. So it
// has a token of its own, above those before it and below those after. If that
// token is not above the fence, the node changes nothing and only reports the
// fence, now or later, and the request is repeated with a higher token.
func (c *Claim) sendYield(v View, nodes Set, out *Ready) {
	y := &c.yield
	req := c.request(y.op)
	req.Once = true
	// No higher than necessary: others may have proposed tokens meanwhile, which
	// must not become stale.
	req.Token = y.floor + 1
	c.above = req.Token
	c.seq++
	y.seq, y.missing, y.stale, y.until = c.seq, nodes, 0, v.Now()+c.cfg.Limit
	y.tries++
	suspects := v.Suspects()
	for i := range c.cfg.Nodes {
		if !nodes.Has(i) {
			continue
		}
		suspect := suspects.Has(i)
		if suspect && !v.MayProbe(i) {
			c.startOver(v, c.random(v)/4, out)
			return
		}
		out.Send = append(out.Send, Message{Node: i, Seq: c.seq, Request: req, Probe: suspect})
	}
}

// onYieldReply handles the answer to a yield.
func (c *Claim) onYieldReply(v View, e *Event, out *Ready) {
	y, bit := &c.yield, Of(e.Node)
	if e.Seq != y.seq || y.missing&bit == 0 {
		return
	}
	y.missing &^= bit
	switch {
	case e.Fault != NoFault || e.Reply.Status == node.Ahead:
		// The node may execute it, and free the lock there, at any later time.
		// This value cannot be used any more.
		c.startOver(v, c.random(v)/4, out)
		return
	case e.Reply.Status == node.Stale:
		y.stale |= bit
		y.floor = max(y.floor, e.Reply.Fence)
	case y.op == node.OpRelease:
	case e.Reply.Status == node.Granted:
		y.ours |= bit
	case e.Reply.Status == node.Reserved && e.Reply.Rank == 1:
		y.next |= bit
	}
	switch {
	case y.missing != 0:
	case y.stale == 0:
		c.yieldOver(v, out)
	case y.tries == maxProposals || y.floor > c.plausible(v):
		c.startOver(v, c.random(v)/4, out)
	default:
		c.sendYield(v, y.stale, out)
	}
}

// yieldOver continues the wait after every node has answered.
func (c *Claim) yieldOver(v View, out *Ready) {
	c.state = Waiting
	y := c.yield
	out.News = append(out.News, YieldOver)
	for i := range c.cfg.Nodes {
		if y.nodes.Has(i) && !y.ours.Has(i) {
			c.nodes[i].holds = leftover
		}
	}
	if y.op == node.OpRelease {
		if c.wait.holder != y.holder {
			c.wait.yielded, c.wait.holder = 0, y.holder
		}
		if y.holder != readers { // the next reader may not have a quorum without them
			c.wait.yielded |= y.nodes
		}
		c.waitOn(v, out)
		return
	}
	c.partial.granted |= y.ours
	if y.ours != 0 {
		c.maybeWin(v, out)
	}
	// Where those before us are gone, we ask for the lock.
	for i := range c.cfg.Nodes {
		if y.next.Has(i) && c.state == Waiting {
			c.requestFrom(v, i, out)
		}
	}
	if c.state != Waiting {
		return
	}
	if y.ours != 0 {
		if !c.wait.split.IsSet() {
			c.wait.split = At(v.Now())
		}
		c.within(v, c.cfg.Patience)
	}
	c.waitOn(v, out)
}

// Yield describes the last yielding: the request, and its tally.
func (c *Claim) Yield() (node.Op, Tally) {
	y := &c.yield
	return y.op, Tally{Nodes: c.cfg.Nodes, Granted: y.ours.Count(), Refused: (y.nodes &^ y.ours).Count()}
}
