package protocol

import "github.com/redlatch/redlatch/node"

// This file is the state machine: what each event does in each state. An event
// that a step function does not name leads to no other state.

// Handle handles an event, and sets out to what is to be done.
func (c *Claim) Handle(v View, e *Event, out *Ready) {
	out.clear()
	c.step(v, e, out)
	out.Line = c.lineNews(v, out.News)
}

// step handles an event in the state of the claim. What an answer says of its node
// is recorded in every state.
func (c *Claim) step(v View, e *Event, out *Ready) {
	if c.lease.cause == WasPassed {
		return // everything is its heir's
	}
	switch e.Kind {
	case Answer:
		c.record(e, out)
	case Timer:
		if !c.Timer().Reached(v.Now()) {
			return // it was moved meanwhile
		}
	}
	switch c.state {
	case New:
		c.stepNew(v, e, out)
	case Asking:
		c.stepAsking(v, e, out)
	case Adopting:
		c.stepAdopting(v, e, out)
	case Marking:
		c.stepMarking(v, e, out)
	case Waiting:
		c.stepWaiting(v, e, out)
	case Yielding:
		c.stepYielding(v, e, out)
	case Attaching:
		c.stepAttaching(v, e, out)
	case Held:
		c.stepHeld(v, e, out)
	case Extending:
		c.stepExtending(v, e, out)
	case Releasing:
		c.stepReleasing(v, e, out)
	case Ending, Gone:
		c.stepOver(v, e, out)
	}
	if c.state == Ending && c.inFlight == 0 {
		c.state = Gone
	}
}

func (c *Claim) stepNew(v View, e *Event, out *Ready) {
	switch e.Kind {
	case Begin:
		c.begin(v, out)
	case Resume:
		if c.wait.waited {
			c.listen(out)
		}
		c.begin(v, out)
	case Attach:
		c.takeOver(v)
		c.state = Attaching
		c.ask(v, node.OpExtend, c.all(), out)
	case Release:
		c.takeOver(v)
		c.release(v, out)
	case Cancel:
		c.giveUp(v, out)
	}
}

func (c *Claim) stepAsking(v View, e *Event, out *Ready) {
	switch e.Kind {
	case Answer:
		if e.Op == node.OpAcquire && e.Seq == c.round.Seq {
			c.count(v, e, out)
		}
	case Timer:
		c.settle(v, out)
	case Wake:
		c.noteWake(e)
	case Cancel:
		c.giveUp(v, out)
	}
}

func (c *Claim) stepAdopting(v View, e *Event, out *Ready) {
	switch e.Kind {
	case Configured:
		if e.Config == nil {
			c.markOrGoOn(v, out)
			return
		}
		c.cfg = *e.Config
		c.nextProposal(v, out)
	case Rejected:
		c.verdict = BadTTL
		c.roundFailed(v, out)
	default:
		c.stepBetween(v, e, out)
	}
}

func (c *Claim) stepMarking(v View, e *Event, out *Ready) {
	switch {
	case e.Kind != Marked:
		c.stepBetween(v, e, out)
	case e.Changed:
		c.nextProposal(v, out) // to get the nodes' present answers
	default:
		c.proposeAgain(v, out)
	}
}

// stepBetween stores what comes while the client adopts or marks: late answers
// of the round, and notifications.
func (c *Claim) stepBetween(v View, e *Event, out *Ready) {
	switch e.Kind {
	case Answer:
		if m := &c.nodes[e.Node]; e.Seq == c.round.Seq && m.got == Pending {
			c.see(e)
			m.unapplied = true
		}
	case Wake:
		c.noteWake(e)
	case Cancel:
		c.giveUp(v, out)
	}
}

func (c *Claim) stepWaiting(v View, e *Event, out *Ready) {
	switch e.Kind {
	case Answer:
		if e.Op == node.OpAcquire {
			c.onLateReply(v, e, out)
		}
	case Wake:
		c.onWake(v, e, out)
	case Timer:
		c.nextRound(v, out)
	case Resume:
		if c.wait.waited {
			c.listen(out)
		}
		c.waitOn(v, out)
	case Cancel:
		c.giveUp(v, out)
	}
}

func (c *Claim) stepYielding(v View, e *Event, out *Ready) {
	switch e.Kind {
	case Answer:
		if e.Once {
			c.onYieldReply(v, e, out)
			return
		}
		if c.isLastReply(e) {
			c.see(e)
			c.distrust(v)
			c.nodes[e.Node].unapplied = true
		}
	case Wake:
		c.noteWake(e)
	case Timer:
		c.startOver(v, c.random(v)/4, out) // a node did not answer
	case Cancel:
		c.giveUp(v, out)
	}
}

func (c *Claim) stepAttaching(v View, e *Event, out *Ready) {
	switch e.Kind {
	case Answer:
		if e.Op == node.OpExtend && e.Seq == c.round.Seq {
			c.count(v, e, out)
		}
	case Timer:
		c.settle(v, out)
	case Cancel:
		c.giveUp(v, out)
	}
}

func (c *Claim) stepHeld(v View, e *Event, out *Ready) {
	switch e.Kind {
	case Answer:
		if e.Op == node.OpExtend && e.Seq == c.round.Seq && c.round.Op == node.OpExtend {
			c.extendedLate(v, e, out)
			return
		}
	case Timer, Extend:
		c.extend(v, out)
		return
	case Downgrade:
		c.becomeReader()
		c.extend(v, out)
		return
	}
	c.stepLease(v, e, out)
}

func (c *Claim) stepExtending(v View, e *Event, out *Ready) {
	switch e.Kind {
	case Answer:
		if e.Op == node.OpExtend && e.Seq == c.round.Seq {
			c.count(v, e, out)
			return
		}
	case Timer, Extend, Downgrade:
		// Who asks to extend gets the result of the extension in flight. A downgrade
		// starts another one after it.
		if e.Kind == Downgrade {
			c.becomeReader()
		}
		if v.Now() >= c.lease.deadline {
			c.expire(v, out)
		} else if e.Kind == Timer {
			c.settle(v, out)
		}
		return
	}
	c.stepLease(v, e, out)
}

// stepLease is what Held and Extending have in common.
func (c *Claim) stepLease(v View, e *Event, out *Ready) {
	switch e.Kind {
	case Answer:
		if e.Op == node.OpAcquire && e.granted() && c.misplaced(e.Reply.Share) {
			c.sendRepair(v, e.Node, e.Reply.Now.UnixMicro(), out)
			return
		}
		c.repairSoon(v, e.Op == node.OpRepair && e.Fault == NoFault && e.Reply.Status == node.Held && IsLease(e.Reply.Value))
	case Wake:
		c.fence = max(c.fence, e.Wake.Fence)
		if AsksAtOnce(e.Wake.Kind) && c.nodes[e.Node].holds != granted {
			c.sendAcquire(e.Node, out)
		}
	case Release:
		if v.Now() >= c.lease.deadline {
			c.expire(v, out)
			return
		}
		c.release(v, out)
	case Detach:
		c.detach(out)
	case LocalWaiters:
		c.noteWaiters(v, e, out)
	case Pass:
		c.passOn(v, e, out)
	case Bar:
		c.pass.barred = true
	}
}

func (c *Claim) stepReleasing(v View, e *Event, out *Ready) {
	switch {
	case e.Kind == Timer:
		c.settle(v, out)
	case e.Kind == Answer && e.Op == node.OpRelease && !e.Once:
		c.stepOver(v, e, out)
		if e.Seq == c.round.Seq {
			c.count(v, e, out)
		}
	default:
		c.stepOver(v, e, out)
	}
}

// stepOver is Ending and Gone: what nodes still have of the claim is undone.
func (c *Claim) stepOver(v View, e *Event, out *Ready) {
	switch {
	case e.Kind != Answer:
	case e.Op == node.OpAcquire || e.Op == node.OpRepair:
		c.undoLate(v, e, out)
	case e.Op == node.OpRelease && !e.Once && e.Fault != NoFault:
		out.Undo = append(out.Undo, Message{Node: e.Node, Request: c.releaseAt(v, e.Node), Slow: true})
	}
}
