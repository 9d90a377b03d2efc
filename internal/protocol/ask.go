package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file asks for the lock: rounds with rising tokens, until one is won or
// the nodes have answered why none can be.

// Verdict says why a round gave no lease, or how a release went.
type Verdict uint8

// The verdicts.
const (
	// NoVerdict: no round is over yet.
	NoVerdict Verdict = iota
	// HeldByAnother: another client holds the lock, or will hold it next.
	HeldByAnother
	// NoQuorum: too few nodes answered, or too few may grant.
	NoQuorum
	// GrantedLate: a quorum granted, but no validity was left.
	GrantedLate
	// Changing: a membership change is in progress.
	Changing
	// Mismatch: the nodes are marked for another membership, or with other
	// parameters. That does not end by itself.
	Mismatch
	// BadNode: a node must not be used in this configuration.
	BadNode
	// BadTTL: the caller's TTL is longer than the nodes' markers allow.
	BadTTL
	// BadSlots: the lock is held with another number of slots.
	BadSlots
	// NotOurs: the nodes report that this claim does not hold the lock.
	NotOurs
	// IsFree: a release was confirmed.
	IsFree
)

// String returns the verdict in words.
func (vd Verdict) String() string {
	return [...]string{
		"none", "held by another", "no quorum", "granted too late", "membership is being changed",
		"marked for others", "node is unusable", "TTL is too long", "held with other slots", "not ours", "free",
	}[vd]
}

// permanent reports that repeating the round cannot help.
func (vd Verdict) permanent() bool {
	return vd == Mismatch || vd == BadNode || vd == BadTTL || vd == BadSlots
}

// Verdict returns why the last round gave no lease, or how the release went.
func (c *Claim) Verdict() Verdict { return c.verdict }

// begin asks the nodes for the lock, with as many proposals of a token as
// necessary. Only the last of these rounds counts: it refreshes grants of an
// earlier proposal, or they are undone with the claim.
func (c *Claim) begin(v View, out *Ready) {
	c.proposals, c.floor = 0, 0
	if c.above > c.plausible(v) {
		// Our clock was wrong when that token was chosen. No node would grant a
		// token above it.
		c.replace(v, New, out)
		return
	}
	c.wait.rounds++
	c.nextProposal(v, out)
}

func (c *Claim) nextProposal(v View, out *Ready) {
	c.proposals++
	c.propose(v)
	if c.mayBeMoved() {
		c.replace(v, New, out)
		return
	}
	c.state = Asking
	c.ask(v, node.OpAcquire, c.all()&^c.wait.yielded, out)
}

// settleAcquire handles the end of a round of acquisitions.
func (c *Claim) settleAcquire(v View, out *Ready) {
	switch t := c.tally(); {
	case t.Won() && Validity(c.cfg.TTL, v.Now()-c.round.Start) > 0:
		c.win(v, c.round.Start, out)
	case t.Won(), c.proposals == maxProposals:
		c.roundFailed(v, out)
	case c.proposals == 1 && !c.cfg.NoWait && c.brokenRound(t):
		// A broken connection is noticed only when it is next used. The second
		// try uses new ones; for the same value it does no harm. Without it, a
		// caller that seldom asks might find nothing but broken connections.
		c.nextProposal(v, out)
	case c.adoptable():
		c.state = Adopting
		out.Adopt = true
	default:
		c.markOrGoOn(v, out)
	}
}

// markOrGoOn continues when the parameters are those of the nodes.
func (c *Claim) markOrGoOn(v View, out *Ready) {
	if c.needsMark() {
		c.state = Marking
		out.AwaitMark = true
		return
	}
	c.proposeAgain(v, out)
}

// proposeAgain repeats the round with another slot or a higher token, if a
// quorum might grant that.
func (c *Claim) proposeAgain(v View, out *Ready) {
	if slot, found := c.commonSlot(); found {
		c.share.Slot = slot
	} else if floor, ok := c.floorAfter(clockOf(v)); ok && c.wantsHigherToken() {
		c.floor = floor
	} else {
		c.roundFailed(v, out)
		return
	}
	c.nextProposal(v, out)
}

// brokenRound reports whether there was no quorum because connections broke.
func (c *Claim) brokenRound(t Tally) bool {
	return !t.Available() && c.where(func(m *member) bool { return m.got == Failed }) != 0
}

func (c *Claim) adoptable() bool {
	return c.where(func(m *member) bool { return m.got == Replied && m.misfit >= OtherMaxTTL }) != 0
}

func (c *Claim) needsMark() bool {
	return c.where(func(m *member) bool { return m.got == Replied && m.needsMark }) != 0
}

// judge returns why the round gave no lease.
func (c *Claim) judge(t Tally) Verdict {
	if t.Won() {
		return GrantedLate
	}
	if c.verdict == BadTTL {
		return BadTTL
	}
	if _, found := c.otherSlots(); found {
		return BadSlots
	}
	bad := false
	misfit := Fits
	for i := range c.cfg.Nodes {
		m := &c.nodes[i]
		switch {
		case m.got == Unusable:
			bad = true
		case m.got != Replied:
		case t.Available() && (m.status == node.Held || m.status == node.Foreign || m.status == node.Reserved):
			return HeldByAnother
		case misfit == Fits:
			misfit = m.misfit
		}
	}
	switch {
	case misfit == Barred && !t.Available():
		return Changing
	case misfit != Fits && !t.Available():
		return Mismatch
	case bad:
		return BadNode
	}
	return NoQuorum
}

// roundFailed decides whether to wait after a round that gave no lease.
func (c *Claim) roundFailed(v View, out *Ready) {
	t := c.tally()
	c.verdict = c.judge(t)
	delay, again := c.nextIn(v, t)
	if !again {
		c.giveUp(v, out)
		return
	}
	out.News = append(out.News, Waits)
	switch {
	case !t.Available(): // and so in no queue
	case !c.wait.queued:
		c.takeTicket(v)
		delay = 0 // it can be queued only now
	case !c.mayBeQueued():
		// The client knows the nodes' clocks better after this round, and no
		// node has the ticket yet.
		c.takeTicket(v)
	}
	if !c.wait.waited {
		c.wait.waited = true
		if c.wait.missed != v.Missed() {
			delay = 0
		}
	}
	c.listen(out)
	c.pause(v, t, delay, out)
}

// giveUp ends the attempt for good.
func (c *Claim) giveUp(v View, out *Ready) {
	c.drop(v, out)
	out.News = append(out.News, Refused)
}

// replace gives this value up and continues with its successor in a given
// state: the undo of this value must not affect the next round's requests.
func (c *Claim) replace(v View, next State, out *Ready) {
	c.successor = next
	c.drop(v, out)
	out.Replaced = true
}

// Limits of the node time limit, if the caller sets none: a tenth of the TTL,
// so that an extension without an answer can be repeated a few times, over new
// connections, before the lease ends.
const (
	leastLimit = 250 * time.Millisecond
	mostLimit  = 2 * time.Second
	// Patience is how long a round waits for the other nodes when a quorum has
	// answered. A node that does not answer for so long is suspect.
	Patience = 250 * time.Millisecond
)

// LimitFor returns the node time limit for a TTL, if none is set.
func LimitFor(ttl time.Duration) time.Duration { return max(leastLimit, min(ttl/10, mostLimit)) }
