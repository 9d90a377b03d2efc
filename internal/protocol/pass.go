package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file passes a lease on inside a process, without asking the nodes. The
// claim, with its value and its keys, goes from one caller to the next; each of
// them has a token of its own. The nodes have reserved these tokens before: see
// confirm. docs/algorithm.md, section 9, has the argument.

const (
	// MaxReserve is how many tokens are reserved at a time.
	MaxReserve = 64
	// maxPasses and passTime are how often, and for how long, a lock is passed on
	// before the nodes are asked again: others may not be in a queue.
	maxPasses = 64
	passTime  = 100 * time.Millisecond
	// freshFor is for how long, in addition to two rounds, what the nodes said of
	// their queues is relied upon: others may have joined since.
	freshFor = time.Millisecond
	// fastHolders is how many holders have the lock during one round, if they are
	// fast beside it.
	fastHolders = 8
)

// passing is what a lease knows about the callers that wait for it in its own
// process, and about the passes before it.
type passing struct {
	// What a quorum has reserved: the tokens that are left, none if next is above
	// last; the time before that round was sent; and the lowest ticket that these
	// nodes had in their queues, 0 for none.
	next, last node.Token
	size       node.Token // how many they were
	from       Instant
	before     int64
	took, over Instant // how long that round took, and when it was over

	// What the extension in flight is to reserve: so many tokens above token. The
	// nodes that have done so, and the lowest ticket in their queues, 0 for none.
	token, reserve node.Token
	confirmed      Set
	lowest         int64

	waiters int32 // how many wait
	wanted  bool  // some came since tokens were last asked for
	barred  bool  // it must not be passed on

	passes int32
	since  Instant // the first pass
}

// Ticket returns the claim's place in the nodes' queues; 0 if it has none yet.
func (c *Claim) Ticket() int64 { return c.wait.ticket }

// Config returns the configuration of the claim.
func (c *Claim) Config() *Config { return &c.cfg }

// CanPass reports whether a lease of this kind may be passed on at all.
func (c *Claim) CanPass() bool {
	return c.state.IsHeld() && c.cfg.KeepAlive && c.cfg.Keep == 0 && c.share.Mode == node.Exclusive && !c.pass.barred
}

// MayPass reports whether the lease may be passed on to a waiter now. It must
// have come before the nodes were asked to reserve its token, so that no lease
// that was acquired before it came has a higher one. Nobody may be before it in
// a node's queue, as the nodes said a moment ago. And the lease must be worth
// having: an extension in flight, or the next one, may fail.
func (c *Claim) MayPass(v View, w Waiter) bool {
	p := &c.pass
	return c.fitsWaiter(v, w) && p.next <= p.last && p.last != 0 && w.Came < p.from && v.Now()-p.from <= freshFor+2*p.took &&
		(p.before == 0 || w.Ticket < p.before) && c.lease.deadline-v.Now() >= c.cfg.TTL/2
}

// MayPassSoon reports whether the extension in flight reserves a token for a
// waiter, or one could: it takes no longer than a release, and the next holder
// need not ask.
func (c *Claim) MayPassSoon(v View, w Waiter) (inFlight, could bool) {
	if !c.fitsWaiter(v, w) || v.Now() >= c.lease.deadline {
		return false, false
	}
	return c.state == Extending && c.pass.reserve > 0 && w.Came < c.round.Start, c.state == Held && c.worthARound()
}

// fitsWaiter reports whether the lease is one that may be passed on to a waiter,
// tokens aside.
func (c *Claim) fitsWaiter(v View, w Waiter) bool {
	return c.CanPass() && c.lease.deadline < c.HoldUntil() && !c.PassLimit(v) && w.Ticket != 0 && c.cfg.PassesTo(w.Config)
}

// PassesTo reports whether a lease is what another caller asks for.
func (cfg *Config) PassesTo(w *Config) bool {
	return cfg.Nodes == w.Nodes && cfg.TTL == w.TTL && cfg.Window == w.Window && cfg.Limit == w.Limit &&
		cfg.KeepAlive == w.KeepAlive && cfg.Keep == w.Keep && cfg.Share == w.Share && cfg.MaxHold == w.MaxHold
}

// PassLimit reports that the lease was passed on so often, or for so long, that
// the nodes have to be asked.
func (c *Claim) PassLimit(v View) bool {
	p := &c.pass
	return p.passes > 0 && (p.passes >= maxPasses || v.Now()-p.since >= passTime)
}

// passedForLong reports that the lease is at the end of such a row, or so near it
// that no more tokens are asked for.
func (c *Claim) passedForLong(v View) bool {
	return c.PassLimit(v) || c.pass.passes > 0 && !c.worthARound()
}

// pauses reports that the next caller in the local queue asks when the release is
// over, and not as soon as it was sent: the lease was passed on for long, and clients
// that are in no queue need a moment in which the lock is free.
func (c *Claim) pauses(v View) bool { return c.lease.cause == WasReleased && c.passedForLong(v) }

// worthARound reports whether a round for more tokens is worth its time: if the
// limit allows fewer passes than half of the callers that wait need, the lock is
// released instead.
func (c *Claim) worthARound() bool {
	return 2*(maxPasses-c.pass.passes) >= min(c.pass.waiters, MaxReserve)
}

// noteWaiters records how many callers wait in the process, and asks the nodes to
// reserve tokens for them if it is time to.
func (c *Claim) noteWaiters(v View, e *Event, out *Ready) {
	c.pass.waiters, c.pass.wanted = int32(e.Waiters), e.Waiters > 0
	if !(e.Changed && c.mayReserve(v)) && !c.WantsReserve(v) {
		return
	}
	c.extend(v, out)
}

// WantsReserve reports whether the nodes are to be asked for more tokens now:
// some callers came since they were asked last, and no extension is in flight.
// The later it is, the more callers are confirmed by one round. So if holders are
// fast beside a round, it is when the last one releases the lock: then all others
// wait. Otherwise it is when the last token was used; or, if that leaves the holders
// enough to do, so early that the next waiters are confirmed while these are served.
func (c *Claim) WantsReserve(v View) bool {
	p := &c.pass
	if !c.mayReserve(v) {
		return false
	}
	if p.last == 0 {
		return true
	}
	left, all := Instant(p.last+1-p.next), Instant(p.size)
	each := (v.Now() - p.over) / max(all-left, 1) // how long a holder has it
	if left == 0 {
		return each*fastHolders >= p.took
	}
	return each*all >= 4*p.took && each*left <= p.took
}

// mayReserve reports whether the nodes may be asked for more tokens.
func (c *Claim) mayReserve(v View) bool {
	return c.pass.wanted && c.state == Held && c.CanPass() && v.Now() < c.lease.deadline && !c.PassLimit(v) && c.worthARound()
}

// Ages reports whether the nodes are to be asked for their queues again, so that
// the lease can be passed on once more.
func (c *Claim) Ages(v View) bool {
	return v.Now()-c.pass.from > freshFor/2+c.pass.took
}

// reserve makes an extension reserve tokens, if waiters came since the last one was
// sent.
func (c *Claim) reserve(v View, req *node.Request) {
	p := &c.pass
	p.token, p.reserve, p.confirmed, p.lowest = 0, 0, 0, 0
	if p.wanted && c.CanPass() {
		p.wanted = false
		p.token, p.reserve = v.Token(max(c.token, p.last)+1), node.Token(min(p.waiters, MaxReserve))
		req.Token, req.Reserve = p.token, p.reserve
	}
}

// confirm counts a node that has reserved the tokens of the extension in flight.
func (c *Claim) confirm(e *Event) {
	p := &c.pass
	if c.round.Op != node.OpExtend || !e.granted() || !e.Reply.Confirmed || p.reserve == 0 {
		return
	}
	p.confirmed |= Of(e.Node)
	if next := e.Reply.Next; next != 0 && (p.lowest == 0 || next < p.lowest) {
		p.lowest = next
	}
}

// takeReserve takes the tokens that a quorum has reserved. Those of an earlier
// reserve that are left are never used.
func (c *Claim) takeReserve() {
	p := &c.pass
	if p.reserve == 0 || p.confirmed.Count() < Quorum(c.cfg.Nodes) {
		return
	}
	p.next, p.last, p.size, p.from, p.before = p.token+1, p.token+p.reserve, p.reserve, c.round.Start, p.lowest
	p.took, p.over = c.round.Elapsed(), c.round.End
}

// passOn ends the lease. Inherit begins the next one.
func (c *Claim) passOn(v View, e *Event, out *Ready) {
	if !c.MayPass(v, e.Waiter) {
		return
	}
	p := &c.pass
	p.waiters, p.wanted = int32(e.Waiters), node.Token(e.Waiters) > p.last-p.next
	c.successor = c.state
	c.state, c.lease.cause, c.verdict = Gone, WasPassed, IsFree
	out.News = append(out.News, Ended)
}

// Inherit makes the claim, which was passed on, the lease that begins at the same
// moment. All requests in flight are now its own.
func (c *Claim) Inherit(v View) {
	p := &c.pass
	c.state, c.lease.cause, c.verdict = c.successor, NotEnded, NoVerdict
	c.token = p.next
	p.next++
	if p.passes++; p.passes == 1 {
		p.since = v.Now()
	}
	c.lease.acquired = v.Now()
	c.wait.rounds, c.wait.paused = 0, 0
}
