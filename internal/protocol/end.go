package protocol

import "github.com/redlatch/redlatch/node"

// This file ends claims, and removes what must not be left on the nodes: grants
// of a claim that failed, grants that came late, keys of a lease that a node was
// not there to release.

// releaseRequest returns the request that removes the claim from a node. Its
// token is no lower than that of any request which may still be in flight, so
// that it makes all of them stale: before we know how far our clock is off,
// proposals may be above the one that is granted in the end. Those that are so
// far off that no node would grant them do not count, since no node would let
// them raise its fence.
func (c *Claim) releaseRequest(v View) node.Request {
	req := c.request(node.OpRelease)
	if c.inFlight > 0 || c.unsure {
		req.Token = max(req.Token, c.earlier.upTo(c.plausible(v)))
	}
	return req
}

// drop gives the claim up, and has it undone on every node that may have
// something of it. Nodes that have not answered yet are undone when they do: a
// release sent now might be overtaken by what it is to undo. A node that said no
// has nothing, and is left alone.
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
	// What is left of it on some node is in the way of others.
	release := c.releaseRequest(v)
	for i := range c.cfg.Nodes {
		out = append(out, Effect{Kind: CleanUp, Node: i, Request: release})
	}
	return out
}

// release ends a lease and frees the lock on every node at once, except for
// those that granted nothing and have not answered yet.
func (c *Claim) release(v View, out []Effect) []Effect {
	switch {
	case c.state == New: // of a lease that another process acquired
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

// freed draws the conclusion from a release.
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
		// A repair asks for a fence that is not at the token. A release makes it
		// stale only until the next holder's fence is there, and then one that
		// was overtaken is granted.
	case granted && e.Token > release.Token:
		// So far off was our clock that this was not thought possible.
		release.Token = e.Token
	case e.Token != 0:
		// The release that the node was sent has a token that is no lower: it
		// removes what came before it, and makes stale what comes after.
		return out
	default:
		// Without tokens the release may have come first. But if it has not come
		// yet, the holder is to learn that it was not too late.
		return append(out, Effect{Kind: UndoLater, Node: e.Node, Request: release})
	}
	return append(out, Effect{Kind: Undo, Node: e.Node, Request: release})
}
