package protocol

import "github.com/redlatch/redlatch/node"

// This file ends claims, and removes what must not be left on the nodes: grants
// of a claim that failed, late grants, and keys of a lease on a node that
// missed the release.

// releaseRequest returns the request that removes the claim from a node. Its
// token is no lower than that of any request that may still be in flight, so
// that it makes all of them stale: before the client knows how far its clock is
// off, proposals may be above the one that is granted in the end. Proposals so
// far off that no node would grant them do not count, because no node would let
// them raise its fence. A yield does not count either: after the release it finds
// nothing to free, and changes nothing.
func (c *Claim) releaseRequest(v View) node.Request {
	req := c.request(node.OpRelease)
	if c.inFlight > 0 || c.unsure != 0 {
		req.Token = max(req.Token, c.earlier.upTo(c.plausible(v)))
	}
	req.Keep = c.keepLeft(v)
	if c.lease.repaired {
		req.NoRepair = c.cfg.Limit
	}
	if c.lease.elsewhere {
		// The other process may still extend it where the release has not come yet,
		// and would get back the nodes where it has. So no node repairs it until the
		// release was sent for the last time, and what was sent because of an
		// extension before that is too late.
		req.NoRepair = req.TTL + 4*c.cfg.Limit + 2*c.cfg.Window
	}
	return req
}

// releaseAt returns the release for one node. Where an acquisition may be
// executed after it, the node must not queue the claim any more. That acquisition
// has no token that is further ahead of the node's clock than the window, and the
// node queues none that is further behind it.
func (c *Claim) releaseAt(v View, i int) node.Request {
	req := c.releaseRequest(v)
	overtakes := c.nodes[i].inFlight > 0 && !v.InOrder().Has(i)
	if (overtakes || c.unsure.Has(i)) && c.wait.ticket != 0 {
		req.NoRepair = max(req.NoRepair, 2*c.cfg.Window)
	}
	return req
}

// drop gives the claim up, and undoes it on every node that may have something
// of it. Nodes that have not answered are undone when they answer: a release
// that is sent now might arrive before the request that it has to undo. A node
// that refused has nothing, and is sent nothing.
func (c *Claim) drop(v View, out *Ready) {
	c.state = Ending
	c.unlisten(out)
	anything := false
	for i := range c.cfg.Nodes {
		anything = anything || c.nodes[i].holds != nothing || c.nodes[i].inFlight > 0
	}
	if !anything {
		return
	}
	out.Left = append(out.Left, Leftover{Request: c.releaseRequest(v)})
	for i := range c.cfg.Nodes {
		if c.nodes[i].holds != nothing {
			out.Undo = append(out.Undo, Message{Node: i, Request: c.releaseAt(v, i)})
		}
	}
}

func (c *Claim) unlisten(out *Ready) {
	if c.listening {
		out.Unlisten = true
	}
}

// lose ends a lease that was not released.
func (c *Claim) lose(v View, cause Cause, out *Ready) {
	c.state, c.lease.cause = Ending, cause
	c.unlisten(out)
	out.News = append(out.News, Ended)
	// What is left of it on some node blocks others.
	for i := range c.cfg.Nodes {
		out.Undo = append(out.Undo, Message{Node: i, Request: c.releaseAt(v, i), Slow: true})
	}
}

// release ends a lease and frees the lock on all nodes at once. A node that has
// not answered everything is sent the release last only if it executes in order:
// elsewhere a request might arrive after it. If such a node has something of the
// claim, it is sent the release all the same, and once more if a later answer shows
// that it has something again.
func (c *Claim) release(v View, out *Ready) {
	c.partial.notified = 0 // from now on: nodes to undo after the release
	c.state, c.lease.cause = Releasing, WasReleased
	c.unlisten(out)
	out.News = append(out.News, Ended)
	c.released = c.where(func(m *member) bool { return m.inFlight == 0 }) | v.InOrder()&c.all()
	nodes := c.released | c.where(func(m *member) bool { return m.holds != nothing })
	c.ask(v, node.OpRelease, nodes, out)
}

// settleRelease handles the end of a release.
func (c *Claim) settleRelease(v View, out *Ready) {
	c.state = Ending
	switch t := c.tally(); {
	case t.Freed():
		c.verdict = IsFree
	case t.Lost():
		c.verdict = NotOurs
	default:
		c.verdict = NoQuorum
	}
	if c.listening {
		out.Left = append(out.Left, Leftover{Request: c.request(node.OpRelease), Released: true})
	}
	c.undoAfterRelease(v, out)
	out.News = append(out.News, Freed)
}

// detach ends a lease and leaves the lock on the nodes.
func (c *Claim) detach(out *Ready) {
	c.state, c.lease.cause = Ending, WasDetached
	c.unlisten(out)
	out.News = append(out.News, Ended)
}

// undoLate undoes what a node granted after the end of the claim, or queued.
func (c *Claim) undoLate(v View, e *Event, out *Ready) {
	m := &c.nodes[e.Node]
	if c.lease.cause == WasDetached || m.holds == nothing {
		return
	}
	release := c.releaseAt(v, e.Node)
	switch {
	case !c.released.Has(e.Node), e.Again:
		// The node was sent no release, or perhaps executed it first.
	case (e.granted() || e.queued()) && e.Token > release.Token:
		// Our clock was so far off that this was not thought possible.
		release.Token = e.Token
	case e.queued(), e.Fault != NoFault:
		// The release may have been executed before the request, which then
		// joined the queue, or still may; or it came so early that the token was
		// ahead of the node's clock, and raised no fence.
	default:
		// The release that the node was sent has a token that is no lower, and
		// forbids repairs: it removes what was granted before it, and makes
		// stale what comes after it.
		return
	}
	if c.state == Releasing && c.round.sent.Has(e.Node) && e.Token <= release.Token {
		// An undo that overtakes the release would free the lock, and the
		// release would find it lost.
		c.partial.notified |= Of(e.Node)
		return
	}
	out.Undo = append(out.Undo, Message{Node: e.Node, Request: release})
}

// undoAfterRelease undoes what came late while the claim was Releasing.
func (c *Claim) undoAfterRelease(v View, out *Ready) {
	for i := range c.cfg.Nodes {
		if c.partial.notified.Has(i) {
			out.Undo = append(out.Undo, Message{Node: i, Request: c.releaseAt(v, i)})
		}
	}
	c.partial.notified = 0
}
