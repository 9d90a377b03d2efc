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
// them raise its fence.
func (c *Claim) releaseRequest(v View) node.Request {
	req := c.request(node.OpRelease)
	if c.inFlight > 0 || c.unsure {
		req.Token = max(req.Token, c.earlier.upTo(c.plausible(v)))
	}
	if c.yield.on && c.above <= c.plausible(v) {
		// An offer in flight would queue the value once more.
		req.Token = max(req.Token, c.above)
	}
	req.Keep = c.keptFor(v)
	return req
}

// drop gives the claim up, and undoes it on every node that may have something
// of it. Nodes that have not answered are undone when they answer: a release
// that is sent now might arrive before the request that it has to undo. A node
// that refused has nothing, and is sent nothing.
func (c *Claim) drop(v View, out []Effect) []Effect {
	c.state = Ending
	out = c.unlisten(out)
	anything := false
	for i := range c.cfg.Nodes {
		anything = anything || c.nodes[i].holds != nothing || c.nodes[i].inFlight
	}
	if !anything {
		return out
	}
	release := c.releaseRequest(v)
	out = append(out, Effect{Kind: Leftover, Request: release})
	for i := range c.cfg.Nodes {
		if c.nodes[i].holds != nothing {
			out = append(out, Effect{Kind: Undo, Node: i, Request: release})
		}
	}
	return out
}

func (c *Claim) unlisten(out []Effect) []Effect {
	if c.listening {
		out = append(out, Effect{Kind: Unlisten})
	}
	return out
}

// lose ends a lease that was not released.
func (c *Claim) lose(v View, cause Cause, out []Effect) []Effect {
	c.state, c.lease.cause = Ending, cause
	out = append(c.unlisten(out), Effect{Kind: Ended})
	// What is left of it on some node blocks others.
	release := c.releaseRequest(v)
	for i := range c.cfg.Nodes {
		out = append(out, Effect{Kind: CleanUp, Node: i, Request: release})
	}
	return out
}

// release ends a lease and frees the lock on all nodes at once, except on nodes
// that granted nothing and have not answered yet.
func (c *Claim) release(v View, out []Effect) []Effect {
	switch {
	case c.state == New: // a lease that another process acquired
		c.keep(v)
	case c.state != Held:
		return out
	case v.Now() >= c.lease.deadline:
		return c.expire(v, out)
	}
	c.state, c.lease.cause = Ending, WasReleased
	out = append(c.unlisten(out), Effect{Kind: Ended})
	var nodes Set
	for i := range c.cfg.Nodes {
		m := &c.nodes[i]
		if m.released = !m.inFlight || m.holds == granted; m.released {
			nodes |= Of(i)
		}
	}
	return c.ask(v, node.OpRelease, nodes, out)
}

// freed handles the end of a release.
func (c *Claim) freed(out []Effect) []Effect {
	switch t := c.tally(); {
	case t.Freed():
		c.verdict = IsFree
	case t.Lost():
		c.verdict = NotOurs
	default:
		c.verdict = NoQuorum
	}
	if c.listening {
		out = append(out, Effect{Kind: LeftPlace, Request: c.request(node.OpRelease)})
	}
	return append(out, Effect{Kind: Freed})
}

// detach ends a lease and leaves the lock on the nodes.
func (c *Claim) detach(out []Effect) []Effect {
	if c.state != Held {
		return out
	}
	c.state, c.lease.cause = Ending, WasDetached
	return append(c.unlisten(out), Effect{Kind: Ended})
}

// late undoes what a node granted after the end of the claim.
func (c *Claim) late(v View, e *Event, out []Effect) []Effect {
	m := &c.nodes[e.Node]
	if c.lease.cause == WasDetached || m.holds == nothing {
		return out
	}
	release := c.releaseRequest(v)
	granted := e.Fault == NoFault && e.Reply.Status == node.Granted
	switch {
	case !m.released || e.Op == node.OpRepair:
		// A repair is refused only while the fence equals its token. A release
		// makes it stale only until the next holder raises the fence. A repair
		// that arrives after that is granted.
	case granted && e.Token > release.Token:
		// Our clock was so far off that this was not thought possible.
		release.Token = e.Token
	case e.Token != 0:
		// The release that the node was sent has a token that is no lower: it
		// removes what was granted before it, and makes stale what comes after
		// it.
		return out
	default:
		// Without tokens the release may have arrived before the request. If it
		// is still in flight, it must find the key, so that the holder sees
		// that it was not too late.
		return append(out, Effect{Kind: UndoLater, Node: e.Node, Request: release})
	}
	return append(out, Effect{Kind: Undo, Node: e.Node, Request: release})
}
