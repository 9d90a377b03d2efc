package protocol

import (
	"math"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file decides when a claim that was refused asks again by itself. A notification
// makes it ask before that: see onWake.

// waiting is what a claim keeps while its caller waits. Its successor takes it
// over.
type waiting struct {
	came   int64 // when the caller came, by the client's wall clock, in microseconds
	ticket int64
	rounds int32
	missed uint32 // Missed, when the caller came

	// outage is since when every round has found too few nodes; absent if the
	// last one did not. missing is the number of these rounds.
	outage  When
	missing int32

	// rank is the place in the node queues, and since when it has not changed.
	rank  int32
	since Instant

	// quarantine is when the last round was over, if only quarantines kept it
	// from a quorum. spent is how long that has been so since a quorum could last
	// grant, and paused how long in all the wait did not count.
	quarantine    When
	spent, paused time.Duration

	// split is since when every round has left the claim with a minority; absent
	// if the last one did not.
	split When

	// yielded has the nodes that were yielded to holder, which has a quorum
	// without them.
	holder  hash
	yielded Set

	// pace is how long each place took that was served before, in microseconds; 0 if
	// that is not known.
	pace uint16

	queued bool // nodes are asked to queue the claim
	waited bool // a pause has begun
	front  bool // the claim is known to be one of the first two in the queue
	near   bool // a node reported so during a round

	until Instant // when the pause is over
}

// Arrival is when a caller came.
type Arrival struct {
	Ticket int64 // its place in the nodes' queues; 0 if it has none yet
	came   int64
	missed uint32
}

// Arrive returns the arrival of a caller that comes now.
func Arrive(v View, cfg *Config) Arrival {
	a := Arrival{missed: v.Missed(), came: v.Time().UnixMicro()}
	if !cfg.NoWait && v.ClockKnown() {
		a.Ticket = ticketOf(v, a.came)
	}
	return a
}

// SetLimits sets the limits of a caller that waits until a time, and whose context ends
// at another. Either may be absent.
func (cfg *Config) SetLimits(until, ends When) {
	cfg.Until, cfg.Ends = until, ends
	if until.Before(ends) {
		cfg.Ends = until
	}
	cfg.Unbounded = !cfg.Ends.IsSet() && !cfg.NoWait
}

// maxMissing is the number of rounds without a quorum after which a claim is no
// longer queued.
const maxMissing = 2

// takeTicket sets the place in the queues, by the nodes' clocks: behind all who
// came before. Nobody is queued before a node has shown its clock, because a
// wrong ticket would last for the whole wait.
func (c *Claim) takeTicket(v View) {
	c.wait.queued = true
	c.wait.ticket = ticketOf(v, c.wait.came)
}

// ticketOf returns the ticket of a caller that came at a time of the client's
// wall clock.
func ticketOf(v View, came int64) int64 { return came + v.Offset().Microseconds() }

// nextIn returns how long to wait before the next round, and whether there is
// one.
func (c *Claim) nextIn(v View, t Tally) (time.Duration, bool) {
	now := v.Now()
	c.countOutage(now, t)
	if c.verdict.permanent() || c.cfg.NoWait {
		return 0, false
	}
	delay := c.delay(v)
	if c.wait.quarantine.IsSet() {
		delay = c.quarantineDelay(v)
	}
	if until := c.waitsUntil(now); until.IsSet() {
		if until.Reached(now) {
			return 0, false
		}
		delay = min(delay, until.Or(now)-now) // the last round comes when the wait is over
	}
	return delay, true
}

// In a queue that does not notify, a waiter asks again when half of those before it
// may have been served, by how fast the queue moves, and less often the longer it does
// not move, so that waiting for a long job costs little. In a queue that notifies, the
// first two ask every pollMost, so that one of them notices if the other is gone; where
// a place lapses that is not renewed, this renews it. Those behind check whether anybody
// before them is left: a node does nothing by itself, and if all before us are frozen
// nobody else would check. So each of the first lookMany asks about once in lookLeast,
// and those behind them less often, but once in lookMost: a long queue costs little more
// than a short one, and however many are frozen, those behind them are not delayed for
// long.
const (
	pollStep  = 5 * time.Millisecond
	pollLeast = pollStep / 10
	pollStill = 100 * time.Millisecond
	pollMost  = node.WaiterLease * 2 / 5
	lookLeast = node.WaiterLease * 9 / 10
	lookMost  = node.WaiterLease * 7 / 2
	lookMany  = 50
)

// delay is how long to wait after a refused round. In a queue it depends on our
// place: the queue keeps the order. Otherwise it is random, so that contenders
// do not split the nodes again and again, and no longer than the lock can be
// held.
func (c *Claim) delay(v View) time.Duration {
	now := v.Now()
	rank, notified := c.rank()
	fell := int32(rank) < c.wait.rank
	if int32(rank) != c.wait.rank {
		if fell && rank > 0 {
			each := (now - c.wait.since) / time.Duration(c.wait.rank-int32(rank)) / time.Microsecond
			c.wait.pace = uint16(max(min(each, math.MaxUint16), 1))
		}
		c.wait.rank, c.wait.since = int32(rank), now
	}
	switch {
	case rank == 0:
		delay := c.random(v)
		if left, ok := c.freeIn(); ok {
			// Plus a random part of a step: all that wait for the same expiry
			// got the same time.
			delay = min(delay, left+time.Millisecond+v.Random(c.cfg.RetryDelay/20+time.Millisecond))
		}
		return delay
	case !notified:
		still := now - c.wait.since
		served := min(time.Duration(rank)*pollStep, max(still, pollStep)) // soon, to see how fast it moves
		if c.wait.pace > 0 {
			served = max(time.Duration(rank-1)*time.Duration(c.wait.pace)*time.Microsecond/2, pollLeast)
		}
		return min(max(served, min(still/10, pollStill)), pollMost)
	}
	delay := pollMost
	c.wait.front = rank <= 2
	if !c.wait.front {
		delay = min(lookLeast*time.Duration(max(rank, lookMany))/lookMany, lookMost)
		delay -= v.Random(delay / 4) // not all at once
	}
	if fell && c.fitsBesideHolders() {
		// While only waiters keep us out, one of them lapsed or left. If it
		// lapsed, the next one may be gone too: its turn is over after TurnLease.
		delay = min(delay, node.TurnLease+time.Millisecond+v.Random(10*time.Millisecond))
	}
	if rank == 1 && c.foreignHolder() {
		delay = min(delay, c.random(v)) // its release notifies nobody
	}
	if left, ok := c.freeIn(); ok && rank == 1 {
		delay = min(delay, left+time.Millisecond)
	}
	for i := range c.cfg.Nodes {
		if d, ok := c.lookIn(v, i); ok {
			delay = min(delay, d)
		}
	}
	return delay
}

// lookIn returns when to check whether the waiters for which a node keeps a
// free lock have asked for it, if nobody else may check.
func (c *Claim) lookIn(v View, i int) (time.Duration, bool) {
	m := &c.nodes[i]
	if m.got != Replied || m.status != node.Reserved || m.left == 0 {
		return 0, false
	}
	return m.left.duration() + time.Millisecond + v.Random(10*time.Millisecond), true
}

// random is the delay by which callers without a queue avoid each other.
func (c *Claim) random(v View) time.Duration {
	most := c.cfg.RetryDelay
	return most/5 + v.Random(most-most/5)
}

// rank returns our place in the queues, or 0 if a quorum has not queued us; and
// whether a quorum will notify us.
func (c *Claim) rank() (rank int, notified bool) {
	var buf [MaxNodes]int
	ranks, notifying := buf[:0], 0
	for i := range c.cfg.Nodes {
		if m := &c.nodes[i]; m.got == Replied && m.rank > 0 {
			ranks = append(ranks, int(m.rank))
			if m.wakes {
				notifying++
			}
		}
	}
	quorum := Quorum(c.cfg.Nodes)
	if len(ranks) < quorum {
		return 0, false
	}
	slices.Sort(ranks)
	return ranks[quorum-1], notifying >= quorum
}

// Place returns our place in the node queue: 1 for the next holder, 0 if no
// quorum has queued us.
func (c *Claim) Place() int {
	rank, _ := c.rank()
	return rank
}

// mayBeQueued reports whether a node may have queued us.
func (c *Claim) mayBeQueued() bool {
	return c.where(func(m *member) bool {
		return m.got == Replied && m.rank > 0 || m.got == Pending || m.got == Busy || m.got == Failed || m.got == Late
	}) != 0
}

// foreignHolder reports whether the holder is a foreign client, whose release
// notifies nobody.
func (c *Claim) foreignHolder() bool {
	return c.where(func(m *member) bool { return m.said(node.Foreign) || m.said(node.Held) && !m.lease }) != 0
}

// freeIn returns when a quorum of nodes will be free at the latest if nobody
// extends: the quorum-th smallest of the times left.
func (c *Claim) freeIn() (time.Duration, bool) {
	var buf [MaxNodes]time.Duration
	left := buf[:0]
	for i := range c.cfg.Nodes {
		switch m := &c.nodes[i]; {
		case m.got != Replied:
		case m.status == node.Held || m.status == node.Foreign:
			if m.left != forEver {
				left = append(left, m.left.duration())
			}
		default:
			left = append(left, 0)
		}
	}
	// If a quorum is free already it was a split vote, which time does not
	// resolve.
	free := QuorumAfter(left, c.cfg.Nodes)
	return free, free > 0
}

// readers is the holder of a lock that readers hold.
const readers hash = 1

// takenBy returns the holder that has a quorum, if there is one.
func (c *Claim) takenBy() (holder hash, taken bool) {
	if c.heldByReaders() {
		return readers, true
	}
	for i := range c.cfg.Nodes {
		holder := c.nodes[i].holder
		if c.nodes[i].said(node.Held) && c.isQuorum(func(m *member) bool { return m.said(node.Held) && m.holder == holder }) {
			return holder, true
		}
	}
	return 0, false
}

// isQuorum reports whether something is true of a quorum of nodes.
func (c *Claim) isQuorum(is func(*member) bool) bool {
	return c.where(is).Count() >= Quorum(c.cfg.Nodes)
}

// grants returns the nodes that granted in the last round.
func (c *Claim) grants() Set {
	return c.where(func(m *member) bool { return m.said(node.Granted) })
}

// inQueues reports whether a quorum of nodes either granted, or has queued us.
func (c *Claim) inQueues() bool {
	ranked := c.where(func(m *member) bool { return m.got == Replied && m.rank > 0 })
	return ranked&^c.grants() != 0 && (ranked|c.grants()).Count() >= Quorum(c.cfg.Nodes)
}
