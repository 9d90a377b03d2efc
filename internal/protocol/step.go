package protocol

import "github.com/redlatch/redlatch/node"

// This file is the state machine: what each event does in each state. An event
// that a step function does not name leads to no other state.

// Handle handles an event and appends its effects to out. What an answer says of
// its node is recorded in every state.
func (c *Claim) Handle(v View, e *Event, out []Effect) []Effect {
	if c.lease.cause == WasPassed {
		return out // everything is its heir's
	}
	switch e.Kind {
	case Answer:
		out = c.record(e, out)
	case Timer:
		if !c.Timer().Reached(v.Now()) {
			return out // it was moved meanwhile
		}
	}
	switch c.state {
	case New:
		out = c.stepNew(v, e, out)
	case Asking:
		out = c.stepAsking(v, e, out)
	case Adopting:
		out = c.stepAdopting(v, e, out)
	case Marking:
		out = c.stepMarking(v, e, out)
	case Waiting:
		out = c.stepWaiting(v, e, out)
	case Yielding:
		out = c.stepYielding(v, e, out)
	case Attaching:
		out = c.stepAttaching(v, e, out)
	case Held:
		out = c.stepHeld(v, e, out)
	case Extending:
		out = c.stepExtending(v, e, out)
	case Releasing:
		out = c.stepReleasing(v, e, out)
	case Ending, Gone:
		out = c.stepOver(v, e, out)
	}
	if c.state == Ending && c.inFlight == 0 {
		c.state = Gone
	}
	return out
}

func (c *Claim) stepNew(v View, e *Event, out []Effect) []Effect {
	switch e.Kind {
	case Begin:
		return c.begin(v, out)
	case Resume:
		if c.wait.waited {
			out = c.listen(out)
		}
		return c.begin(v, out)
	case Attach:
		c.takeOver(v)
		c.state = Attaching
		return c.ask(v, node.OpExtend, c.all(), out)
	case Release:
		c.takeOver(v)
		return c.release(v, out)
	case Cancel:
		return c.giveUp(v, out)
	}
	return out
}

func (c *Claim) stepAsking(v View, e *Event, out []Effect) []Effect {
	switch e.Kind {
	case Answer:
		if e.Op == node.OpAcquire && e.Seq == c.round.Seq {
			return c.count(v, e, out)
		}
	case Timer:
		return c.settle(v, out)
	case Wake:
		c.noteWake(e)
	case Cancel:
		return c.giveUp(v, out)
	}
	return out
}

func (c *Claim) stepAdopting(v View, e *Event, out []Effect) []Effect {
	switch e.Kind {
	case Configured:
		if e.Config == nil {
			return c.markOrGoOn(v, out)
		}
		c.cfg = *e.Config
		return c.nextProposal(v, out)
	case Rejected:
		c.verdict = BadTTL
		return c.roundFailed(v, out)
	}
	return c.stepBetween(v, e, out)
}

func (c *Claim) stepMarking(v View, e *Event, out []Effect) []Effect {
	if e.Kind != Marked {
		return c.stepBetween(v, e, out)
	}
	if e.Changed {
		return c.nextProposal(v, out) // to get the nodes' present answers
	}
	return c.proposeAgain(v, out)
}

// stepBetween stores what comes while the client adopts or marks: late answers
// of the round, and notifications.
func (c *Claim) stepBetween(v View, e *Event, out []Effect) []Effect {
	switch e.Kind {
	case Answer:
		if m := &c.nodes[e.Node]; e.Seq == c.round.Seq && m.got == Pending {
			c.see(e)
			m.unapplied = true
		}
	case Wake:
		c.noteWake(e)
	case Cancel:
		return c.giveUp(v, out)
	}
	return out
}

func (c *Claim) stepWaiting(v View, e *Event, out []Effect) []Effect {
	switch e.Kind {
	case Answer:
		if e.Op == node.OpAcquire {
			return c.onLateReply(v, e, out)
		}
	case Wake:
		return c.onWake(v, e, out)
	case Timer:
		return c.nextRound(v, out)
	case Resume:
		if c.wait.waited {
			out = c.listen(out)
		}
		return c.waitOn(v, out)
	case Cancel:
		return c.giveUp(v, out)
	}
	return out
}

func (c *Claim) stepYielding(v View, e *Event, out []Effect) []Effect {
	switch e.Kind {
	case Answer:
		if e.Once {
			return c.onYieldReply(v, e, out)
		}
		if c.isLastReply(e) {
			c.see(e)
			c.distrust(v)
			c.nodes[e.Node].unapplied = true
		}
	case Wake:
		c.noteWake(e)
	case Timer:
		return c.startOver(v, c.random(v)/4, out) // a node did not answer
	case Cancel:
		return c.giveUp(v, out)
	}
	return out
}

func (c *Claim) stepAttaching(v View, e *Event, out []Effect) []Effect {
	switch e.Kind {
	case Answer:
		if e.Op == node.OpExtend && e.Seq == c.round.Seq {
			return c.count(v, e, out)
		}
	case Timer:
		return c.settle(v, out)
	case Cancel:
		return c.giveUp(v, out)
	}
	return out
}

func (c *Claim) stepHeld(v View, e *Event, out []Effect) []Effect {
	switch e.Kind {
	case Answer:
		if e.Op == node.OpExtend && e.Seq == c.round.Seq && c.round.Op == node.OpExtend {
			return c.extendedLate(v, e, out)
		}
	case Timer, Extend:
		return c.extend(v, out)
	case Downgrade:
		c.becomeReader()
		return c.extend(v, out)
	}
	return c.stepLease(v, e, out)
}

func (c *Claim) stepExtending(v View, e *Event, out []Effect) []Effect {
	switch e.Kind {
	case Answer:
		if e.Op == node.OpExtend && e.Seq == c.round.Seq {
			return c.count(v, e, out)
		}
	case Timer:
		if v.Now() >= c.lease.deadline {
			return c.expire(v, out)
		}
		return c.settle(v, out)
	case Extend:
		// The caller gets the result of the extension in flight.
		if v.Now() >= c.lease.deadline {
			return c.expire(v, out)
		}
	case Downgrade:
		c.becomeReader() // another extension follows the one in flight
		if v.Now() >= c.lease.deadline {
			return c.expire(v, out)
		}
	}
	return c.stepLease(v, e, out)
}

// stepLease is what Held and Extending have in common.
func (c *Claim) stepLease(v View, e *Event, out []Effect) []Effect {
	switch e.Kind {
	case Answer:
		if e.Op == node.OpAcquire && e.granted() && c.misplaced(e.Reply.Share) {
			return c.sendRepair(v, e.Node, e.Reply.Now.UnixMicro(), out)
		}
		c.repairSoon(v, e.Op == node.OpRepair && e.Fault == NoFault && e.Reply.Status == node.Held && IsLease(e.Reply.Value))
	case Wake:
		c.fence = max(c.fence, e.Wake.Fence)
		if e.Wake.Kind.Asks() && c.nodes[e.Node].holds != granted {
			return c.sendAcquire(e.Node, out)
		}
	case Release:
		if v.Now() >= c.lease.deadline {
			return c.expire(v, out)
		}
		return c.release(v, out)
	case Detach:
		return c.detach(out)
	case LocalWaiters:
		return c.noteWaiters(v, e, out)
	case Pass:
		return c.passOn(v, e, out)
	case Bar:
		c.pass.barred = true
	}
	return out
}

func (c *Claim) stepReleasing(v View, e *Event, out []Effect) []Effect {
	switch {
	case e.Kind == Timer:
		return c.settle(v, out)
	case e.Kind == Answer && e.Op == node.OpRelease && !e.Once:
		out = c.stepOver(v, e, out)
		if e.Seq == c.round.Seq {
			out = c.count(v, e, out)
		}
		return out
	}
	return c.stepOver(v, e, out)
}

// stepOver is Ending and Gone: what nodes still have of the claim is undone.
func (c *Claim) stepOver(v View, e *Event, out []Effect) []Effect {
	switch {
	case e.Kind != Answer:
	case e.Op == node.OpAcquire || e.Op == node.OpRepair:
		return c.undoLate(v, e, out)
	case e.Op == node.OpRelease && !e.Once && e.Fault != NoFault:
		return append(out, Effect{Kind: CleanUp, Node: e.Node, Request: c.releaseAt(v, e.Node)})
	}
	return out
}
