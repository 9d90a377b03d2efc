package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is the life of a lease: its deadline, extensions and repairs.

// Cause says why a lease ended.
type Cause uint8

// The causes.
const (
	// NotEnded: the lease is held, or never was.
	NotEnded Cause = iota
	// Expired: the deadline came without an extension that a quorum confirmed.
	Expired
	// MaxHeld: the deadline came, and MaxHold allowed no later one.
	MaxHeld
	// TakenAway: so many nodes refused an extension that the others are no
	// quorum: they do not have the lock, or are of another membership.
	TakenAway
	// WasReleased: by its holder.
	WasReleased
	// WasDetached: by its holder, and the lock stays on the nodes.
	WasDetached
	// WasPassed: by its holder, to the next one in the same process.
	WasPassed
)

// String returns the cause in words.
func (c Cause) String() string {
	return [...]string{"not ended", "expired", "held for its MaxHold", "taken away", "released", "detached", "passed on"}[c]
}

// lease is what a claim keeps while it is held.
type lease struct {
	acquired Instant
	deadline Instant
	extendAt Instant // when it has to be extended; the deadline if it is not extended
	cause    Cause
	repaired bool // a repair was sent: it may be in flight, or a copy of it
	// elsewhere says that it came from another process, which may extend it too.
	elsewhere bool
	keep      When // until when the lock stays taken, even if it is released
}

// Acquired returns when the lease was acquired.
func (c *Claim) Acquired() Instant { return c.lease.acquired }

// Deadline returns when the lease ends unless it is extended before.
func (c *Claim) Deadline() Instant { return c.lease.deadline }

// Cause returns why the lease ended.
func (c *Claim) Cause() Cause { return c.lease.cause }

// HoldUntil returns when the lease ends because of MaxHold.
func (c *Claim) HoldUntil() Instant { return c.lease.acquired + c.cfg.MaxHold }

// win makes the claim a lease. The first request was sent at start. A node's
// time to live began after that, so the lease ends first.
func (c *Claim) win(v View, start Instant, out *Ready) {
	c.takeSlot()
	c.state = Held
	c.verdict = NoVerdict
	c.lease = lease{acquired: v.Now(), repaired: c.lease.repaired, elsewhere: c.lease.elsewhere}
	c.startKeep(v)
	c.moveDeadline(start + Validity(c.cfg.TTL, 0))
	// The first extension comes earlier by a small random time, so that leases
	// that were acquired together are not always extended together.
	c.schedule(start - v.Random(c.cfg.TTL/12))
	out.News = append(out.News, Won)
	for i := range c.cfg.Nodes {
		// A node that notified us keeps the lock for us. The lease has to be
		// held there too, so that its queue can continue.
		m := &c.nodes[i]
		if m.notified && m.holds != granted {
			m.notified = false
			c.sendAcquire(i, out)
		}
		if m.said(node.Granted) && c.misplaced(m.share) {
			c.sendRepair(v, i, m.now, out)
		}
	}
}

// takeOver prepares a lease that another process acquired.
func (c *Claim) takeOver(v View) {
	c.startKeep(v)
	c.lease.repaired, c.lease.elsewhere = true, true // repaired perhaps, by that process
}

// startKeep sets until when the lock stays taken.
func (c *Claim) startKeep(v View) {
	if c.cfg.Keep > 0 {
		c.lease.keep = At(v.Now() + c.cfg.Keep)
	}
}

// KeepUntil returns until when the lock stays taken, even if it is released.
func (c *Claim) KeepUntil() When { return c.lease.keep }

// keepLeft returns for how long the lock stays taken although it is released.
func (c *Claim) keepLeft(v View) time.Duration {
	return max(c.lease.keep.Or(v.Now())-v.Now(), 0)
}

// livesFor returns the time to live of an extension or a repair.
func (c *Claim) livesFor(v View) time.Duration { return max(c.cfg.TTL, c.keepLeft(v)) }

func (c *Claim) moveDeadline(to Instant) { c.lease.deadline = min(to, c.HoldUntil()) }

// schedule sets when the lease is extended next, after a round that began at
// from: at a third of its time to live.
func (c *Claim) schedule(from Instant) {
	c.extendIn(from + c.cfg.TTL/3)
}

// extendIn sets when the lease is extended next: at the latest when it ends, and
// not at all if MaxHold allows no later end.
func (c *Claim) extendIn(at Instant) {
	c.lease.extendAt = c.lease.deadline
	if c.cfg.KeepAlive && c.lease.deadline < c.HoldUntil() {
		c.lease.extendAt = min(c.lease.extendAt, at)
	}
}

// expire ends the lease at its deadline.
func (c *Claim) expire(v View, out *Ready) {
	cause := Expired
	if c.lease.deadline == c.HoldUntil() {
		cause = MaxHeld
	}
	c.lose(v, cause, out)
}

// extend asks the nodes for the whole time to live again.
func (c *Claim) extend(v View, out *Ready) {
	if v.Now() >= c.lease.deadline {
		c.expire(v, out)
		return
	}
	c.state = Extending
	c.ask(v, node.OpExtend, c.all(), out)
}

// settleExtend handles the end of an extension. A node that has lost its data answers
// that it lacks the lease, and that is a refusal. While a quorum still has it, the lease
// goes on, and that node is repaired after its quarantine. If so many have lost their
// data that the others are no quorum, the lease ends at once.
func (c *Claim) settleExtend(v View, out *Ready) {
	c.state = Held
	now, t := v.Now(), c.tally()
	if now >= c.lease.deadline {
		c.expire(v, out) // it is not revived, and its nodes are not repaired
		return
	}
	if t.Won() {
		for i := range c.cfg.Nodes {
			c.repair(v, i, out)
		}
	}
	switch {
	case t.Won() && Validity(c.cfg.TTL, now-c.round.Start) > 0:
		c.takeReserve()
		// Counted from before the first send, and never moved back.
		if to := c.round.Start + Validity(c.cfg.TTL, 0); to > c.lease.deadline {
			c.moveDeadline(to)
		}
		c.schedule(c.round.Start)
		for i := range c.cfg.Nodes {
			c.repairSoon(v, c.nodes[i].said(node.Held) && c.nodes[i].lease)
		}
		if c.round.share != c.share {
			c.extend(v, out) // it was downgraded meanwhile
			return
		}
		out.News = append(out.News, Extended)
	case t.Lost():
		c.lose(v, TakenAway, out)
	case c.round.share != c.share:
		c.extend(v, out)
	default:
		// Retry as often as possible before the deadline.
		c.pass.wanted = c.pass.wanted || c.pass.reserve > 0
		c.extendIn(now + max(c.cfg.TTL/30, time.Millisecond))
		out.News = append(out.News, NotExtended)
	}
}

// extendedLate handles an answer that came after a quorum had extended.
func (c *Claim) extendedLate(v View, e *Event, out *Ready) {
	if c.see(e); c.round.Won {
		c.repairSoon(v, c.nodes[e.Node].said(node.Held) && c.nodes[e.Node].lease)
		c.repair(v, e.Node, out)
	}
}

// repairSoon extends a lease soon if a node has it for a rival, who gives up
// there when it sees that a quorum has it for us. The node can be repaired then. A
// third of the time to live later another rival may be in the way.
func (c *Claim) repairSoon(v View, rival bool) {
	if at := v.Now() + max(c.cfg.Patience, c.cfg.TTL/30, time.Millisecond); rival && at < c.lease.extendAt {
		c.extendIn(at)
	}
}

// repair gives the lock to a node that lacks it, in a round in which a quorum
// extended it. It never counts towards that round. A node in quarantine is
// repaired later. One that lost its marker is sent the repair: its refusal is how
// a holder without rivals learns that the node has to be marked.
func (c *Claim) repair(v View, i int, out *Ready) {
	if m := &c.nodes[i]; m.said(node.Absent) && !v.InQuarantine(i) {
		c.sendRepair(v, i, m.now, out)
	}
}

// sendRepair sends a repair to a node that answered at now, on its own clock. A
// lease that is over, though the claim does not know it yet, is not repaired.
func (c *Claim) sendRepair(v View, i int, now int64, out *Ready) {
	if v.Now() >= c.lease.deadline {
		return
	}
	c.note(Of(i))
	c.lease.repaired = true
	req := c.request(node.OpRepair)
	req.TTL = c.livesFor(v)
	// Counted from when the node answered that it lacks the lease, which is
	// before we send. So the repair cannot be executed any more when we stop
	// waiting for its answer and undo it.
	req.Until = time.UnixMicro(now).Add(c.cfg.Limit)
	out.Send = append(out.Send, Message{Node: i, Seq: c.seq, Request: req})
}

// settleAttach handles the extension that resumes a lease of another process.
// Until it is confirmed the lease is not ours, and nothing is released if it
// fails.
func (c *Claim) settleAttach(v View, out *Ready) {
	t := c.tally()
	if t.Won() && Validity(c.cfg.TTL, v.Now()-c.round.Start) > 0 {
		c.win(v, c.round.Start, out)
		return
	}
	c.state, c.verdict = Gone, NoQuorum
	for i := c.cfg.Nodes - 1; i >= 0; i-- {
		switch m := &c.nodes[i]; {
		case m.got != Replied || m.misfit == Fits:
		case m.misfit == Barred:
			c.verdict = Changing
		default:
			c.verdict = Mismatch
		}
	}
	if c.verdict == NoQuorum && t.Lost() {
		c.verdict = NotOurs
	}
	out.News = append(out.News, Refused)
}
