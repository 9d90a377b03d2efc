package protocol

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is for the exploration of all interleavings: two claims that will
// behave alike have the same canonical form.

// Frame is the moment that a canonical form is relative to.
type Frame struct {
	Now   Instant // on the client's monotonic clock
	Clock int64   // the time, in microseconds
	Least int64   // tokens and clocks that are further than this below Clock are alike
}

// Token is a token, or a clock in microseconds, relative to the frame.
func (f Frame) Token(t node.Token) int64 {
	if t == 0 {
		return 1 << 40 // no token
	}
	return f.Clock64(int64(t))
}

// Clock64 is a time in microseconds, relative to the frame.
func (f Frame) Clock64(us int64) int64 { return max(us-f.Clock, -f.Least) }

// Canonical returns the claim without what can make no difference any more. It
// must not wait for the lock in more than one try, except in the states Waiting
// and Asking, of which then everything is kept.
func (c *Claim) Canonical() Claim {
	n := *c
	n.verdict, n.cfg, n.round.End = NoVerdict, Config{}, 0
	if c.inFlight == 0 && c.unsure == 0 {
		n.earlier, n.proposed = proposals{}, 0 // note does so before they are used
	}
	for i := range n.nodes {
		if m := &n.nodes[i]; m.inFlight == 0 && !c.state.asks() {
			m.seq = 0
		}
	}
	switch c.state {
	case Asking, Adopting, Marking, Waiting, Yielding, Attaching:
		if c.cfg.NoWait {
			n.wait = waiting{rounds: c.wait.rounds, queued: c.wait.queued, ticket: c.wait.ticket}
			for i := range n.nodes {
				m := &n.nodes[i]
				m.forgetWaiting()
				if m.inFlight == 0 {
					m.seq = 0
				}
				// spanOf reads these of nodes that judged the token alone.
				switch {
				case m.got != Replied:
					m.fence, m.now, m.status = 0, 0, 0
				case m.status != node.Granted && m.status != node.Stale && m.status != node.Behind && m.status != node.Ahead:
					m.fence, m.now = 0, 0
				}
			}
		}
	case Held, Extending:
		n.afterAsking()
		if c.round.Op != node.OpExtend {
			n.round = Round{}
		}
		if c.state == Held {
			n.round = Round{Op: n.round.Op, Seq: n.round.Seq, Won: n.round.Won, Over: n.round.Over}
			n.forgetAnswers()
		}
		for i := range n.nodes {
			m := &n.nodes[i]
			rival := m.said(node.Held) && m.lease // settleExtend reads it
			m.forgetWaiting()
			m.fence, m.misfit, m.needsMark, m.lease = 0, Fits, false, rival
			if m.got != Replied {
				m.status = 0
			}
			if m.got != Replied || m.status != node.Absent {
				m.now = 0 // repair reads it
			}
		}
		if c.cfg.MaxHold >= Unlimited {
			n.lease.acquired = 0
		}
	case Releasing, Ending, Gone:
		late := c.state == Releasing && (c.inFlight > 0 || c.partial.notified != 0) // what is undone when the release is over
		if c.inFlight == 0 && !late || c.lease.cause == WasPassed {
			return Claim{state: Gone, value: c.value}
		}
		n.afterAsking()
		n.forgetAnswers()
		n.state, n.round, n.listening, n.successor = Gone, Round{}, false, New
		if late {
			n.state, n.partial.notified = Releasing, c.partial.notified
			n.round = Round{sent: c.round.sent, limit: c.round.limit, until: c.round.until}
		}
		n.pass = passing{}
		n.lease = lease{keep: c.lease.keep, repaired: c.lease.repaired, elsewhere: c.lease.elsewhere}
		if c.lease.cause == WasDetached {
			n.lease.cause = WasDetached
		}
	}
	return n
}

// asks reports that requests of a round, or between two, have been sent, and
// that the claim still wants the lock.
func (s State) asks() bool { return s.Wants() && s != New }

// Unlimited is a MaxHold that no lease reaches.
const Unlimited = 1000 * time.Hour

// afterAsking forgets what is kept for the next round alone.
func (c *Claim) afterAsking() {
	c.floor, c.fence, c.above, c.proposals = 0, 0, 0, 0
	c.partial, c.yield = partialGrants{}, yielding{}
	c.wait = waiting{queued: c.wait.queued, ticket: c.wait.ticket}
	for i := range c.nodes {
		c.nodes[i].notified, c.nodes[i].unapplied = false, false
	}
}

func (c *Claim) forgetAnswers() {
	for i := range c.nodes {
		m := &c.nodes[i]
		*m = member{holds: m.holds, inFlight: m.inFlight, seq: m.seq, notified: m.notified, unapplied: m.unapplied}
	}
}

// forgetWaiting forgets what decides when to ask again.
func (m *member) forgetWaiting() { m.rank, m.left, m.wakes, m.lease, m.holder = 0, 0, false, false, 0 }

// AppendTo appends all of a canonical claim but its nodes. The value is not
// part of it, and the numbers of requests are relative to the last one.
func (c *Claim) AppendTo(b []byte, f Frame) []byte {
	e := encoder{b, f, c.seq}
	e.add(int64(c.state), int64(c.successor), int64(c.inFlight), int64(c.verdict), int64(c.proposals))
	e.bits(c.unsure != 0, c.listening, c.round.Over, c.round.Won, c.wait.queued, c.wait.waited, c.wait.front, c.wait.near)
	e.share(c.share)
	e.share(c.round.share)
	e.tokens(c.token, c.floor, c.fence, c.above, c.earlier.least, c.earlier.most, c.proposed)
	e.add(int64(c.round.Op))
	e.seqs(c.round.Seq)
	e.times(c.round.Start, c.round.End, c.round.limit)
	e.times(c.lease.acquired, c.lease.deadline, c.lease.extendAt)
	e.whens(c.round.until, c.lease.keep)
	e.add(int64(c.lease.cause))
	e.bits(c.lease.repaired, c.lease.elsewhere)
	if p := c.pass; p != (passing{}) {
		e.add(1, int64(p.waiters), int64(p.passes), int64(p.reserve), int64(p.size), e.clock(p.before), e.clock(p.lowest))
		e.bits(p.wanted, p.barred)
		e.tokens(p.next, p.last, p.token)
		e.times(p.from, p.since, p.took, p.over)
	} else {
		e.add(0)
	}
	if w := c.wait; w != (waiting{}) {
		e.add(1, e.clock(w.came), e.clock(w.ticket), int64(w.rounds), int64(w.missed), int64(w.missing), int64(w.rank), int64(w.pace), int64(w.holder),
			int64(w.spent), int64(w.paused))
		e.times(w.since, w.until)
		e.whens(w.outage, w.quarantine, w.split)
	} else {
		e.add(0)
	}
	if p := c.partial; p != (partialGrants{}) {
		e.add(1, int64(p.stale))
		e.seqs(p.round, p.first)
		e.times(p.start)
		e.whens(p.enough)
	} else {
		e.add(0)
	}
	if y := c.yield; y != (yielding{}) {
		e.add(1, int64(y.op), int64(y.tries), int64(y.holder))
		e.seqs(y.seq)
		e.tokens(y.floor)
		e.times(y.until)
	} else {
		e.add(0)
	}
	return e.b
}

// AppendNodeTo appends what a canonical claim knows of one node.
func (c *Claim) AppendNodeTo(b []byte, i int, f Frame) []byte {
	e, m := encoder{b, f, c.seq}, &c.nodes[i]
	e.bits(c.released.Has(i), m.notified, m.unapplied, m.wakes, m.needsMark, m.lease, c.clockless.Has(i), c.wait.yielded.Has(i))
	p, y := &c.partial, &c.yield
	e.bits(c.round.sent.Has(i), c.round.awaited.Has(i), p.granted.Has(i), p.requested.Has(i), p.notified.Has(i), c.unsure.Has(i))
	e.bits(y.nodes.Has(i), y.missing.Has(i), y.stale.Has(i), y.ours.Has(i), y.next.Has(i), c.pass.confirmed.Has(i))
	e.b = append(e.b, byte(m.holds), byte(m.got), byte(m.status), byte(m.misfit))
	e.seqs(m.seq)
	e.share(m.share)
	e.add(int64(m.inFlight), int64(m.free), int64(m.rank), int64(m.left), int64(m.holder), int64(m.server))
	e.tokens(m.fence)
	e.add(e.clock(m.now))
	return e.b
}

// encoder appends numbers relative to a frame.
type encoder struct {
	b   []byte
	f   Frame
	seq uint32
}

func (e *encoder) add(all ...int64) {
	for _, x := range all {
		e.b = binary.AppendVarint(e.b, x)
	}
}

func (e *encoder) bits(all ...bool) {
	var x byte
	for i, b := range all {
		if b {
			x |= 1 << i
		}
	}
	e.b = append(e.b, x)
}

func (e *encoder) tokens(all ...node.Token) {
	for _, t := range all {
		e.add(e.f.Token(t))
	}
}

func (e *encoder) share(s node.Share) { e.b = append(e.b, byte(s.Mode), s.Slots, s.Slot) }

// clock is a time in microseconds; 0 is none.
func (e *encoder) clock(us int64) int64 { return e.f.Token(node.Token(us)) }

// seqs appends numbers of requests; 0 is none.
func (e *encoder) seqs(all ...uint32) {
	for _, s := range all {
		if s == 0 {
			e.add(-1)
		} else {
			e.add(int64(e.seq - s))
		}
	}
}

// whens appends times that may be absent.
func (e *encoder) whens(all ...When) {
	for _, w := range all {
		if at, ok := w.Get(); ok {
			e.add(int64(at - e.f.Now))
		} else {
			e.add(1 << 40)
		}
	}
}

// times appends times; 0 is one that was never set.
func (e *encoder) times(all ...Instant) {
	for _, t := range all {
		if t == 0 {
			e.add(1 << 40)
		} else {
			e.add(int64(t - e.f.Now))
		}
	}
}

// InFlight returns how many acquisitions and repairs have had no answer.
func (c *Claim) InFlight() int { return int(c.inFlight) }

// Since returns how many requests were sent after the one of that number.
func (c *Claim) Since(seq uint32) uint32 { return c.seq - seq }

// Clone returns a line that shares nothing with this one.
func (l *Line) Clone() Line {
	n := *l
	n.behind = slices.Clone(l.behind)
	return n
}

// AppendTo appends a canonical form of the line. name names a caller.
func (l *Line) AppendTo(b []byte, f Frame, name func(caller any) byte) []byte {
	e := encoder{b: append(b, byte(l.state), byte(l.shortage), byte(len(l.behind)))}
	e.bits(l.told, l.elsewhere)
	for _, w := range l.behind {
		e.b = append(e.b, name(w.Caller))
	}
	if l.holder != "" {
		e.add(int64(l.since-f.Now), int64(l.patience))
	}
	e.add(int64(l.look.Or(f.Now-1) - f.Now))
	return e.b
}

// AppendTo writes down what a change knows.
func (c *Change) AppendTo(b []byte) []byte {
	b = fmt.Append(b, c.State, c.Mine.Generation, c.Least, c.Servers)
	for _, s := range c.servers {
		b = fmt.Append(b, s.Silent, s.Differs, s.Trusted, s.Left, s.Reason, s.Marked != nil)
		if s.Marked != nil {
			b = fmt.Append(b, *s.Marked)
		}
	}
	return b
}
