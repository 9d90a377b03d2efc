package protocol

import (
	"math"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file sends the requests of a claim, and handles their answers.

// request returns a request about the claim. The runner adds the name, the marker to
// compare, and by FenceRetention how long to keep the fence.
func (c *Claim) request(op node.Op) node.Request {
	return node.Request{
		Op: op, Share: c.share, Value: c.value, TTL: max(c.cfg.TTL, c.cfg.Keep), Fencing: node.Fencing{Token: c.token, Window: c.cfg.Window}, Waiting: node.Waiting{Wait: c.wait.queued, Ticket: c.wait.ticket},
	}
}

// ask begins a round: it sends op to the given nodes concurrently.
func (c *Claim) ask(v View, op node.Op, nodes Set, out *Ready) {
	c.open(v, op, nodes, out)
	if c.skipped() {
		c.maybeSettle(v, out)
	}
}

func (c *Claim) open(v View, op node.Op, nodes Set, out *Ready) {
	now := v.Now()
	if op == node.OpAcquire {
		c.note(nodes)
	} else {
		c.seq++
	}
	suspects := v.Suspects()
	c.round = Round{Op: op, Seq: c.seq, Start: now, sent: nodes, awaited: nodes &^ suspects, limit: now + c.cfg.Limit, share: c.share}
	req := c.request(op)
	if op == node.OpExtend {
		req.TTL = c.livesFor(v)
		c.reserve(v, &req)
	}
	if ends, limited := c.cfg.Ends.Get(); limited && op == node.OpAcquire && req.Wait {
		req.Until = v.Time().Add(v.Offset() + time.Duration(ends-now))
	}
	for i := range c.cfg.Nodes {
		m := &c.nodes[i]
		m.got, m.unapplied = Pending, false
		if !nodes.Has(i) {
			continue
		}
		suspect := suspects.Has(i)
		if suspect && !v.MayProbe(i) {
			m.got = Skipped
			c.released &^= Of(i)
			if op == node.OpAcquire {
				c.inFlight--
				m.inFlight--
			}
			if op == node.OpRelease && (m.holds != nothing || c.lease.repaired) {
				out.Undo = append(out.Undo, Message{Node: i, Request: c.releaseAt(v, i), Slow: true})
			}
			continue
		}
		if op == node.OpRelease {
			req = c.releaseAt(v, i)
		}
		out.Send = append(out.Send, Message{Node: i, Seq: c.seq, Request: req, Probe: suspect})
	}
}

// skipped reports whether a suspect node was not asked in this round: the round
// may then be decided before any answer comes.
func (c *Claim) skipped() bool {
	return c.where(func(m *member) bool { return m.got == Skipped }) != 0
}

// note records that an acquisition or a repair is sent to the nodes.
func (c *Claim) note(nodes Set) {
	if c.inFlight == 0 && c.unsure == 0 {
		c.earlier, c.proposed = proposals{}, 0 // no earlier request can be executed any more
	}
	c.seq++
	for i := range c.cfg.Nodes {
		if nodes.Has(i) {
			c.nodes[i].seq = c.seq
			c.nodes[i].inFlight++
			c.inFlight++
		}
	}
	if c.proposed != c.token {
		if c.proposed != 0 {
			c.earlier.add(c.proposed)
		}
		c.proposed = c.token
	}
}

// record records what a node may have of the claim after an answer to an
// acquisition or a repair, in every state, before a step looks at the answer.
func (c *Claim) record(e *Event, out *Ready) {
	if e.Op != node.OpAcquire && e.Op != node.OpRepair {
		return
	}
	m := &c.nodes[e.Node]
	m.inFlight--
	c.inFlight--
	if e.Fault.sent() {
		c.unsure |= Of(e.Node)
	}
	switch {
	case e.granted():
		m.holds = granted
	case e.Fault.sent(), e.queued(), e.Reply.Again, e.Fault == Contended:
		// What was sent again may have been queued the first time. What was contended
		// may have a place.
		m.holds = max(m.holds, leftover)
	}
	if e.queued() && !c.state.IsOver() {
		c.listen(out)
	}
	if e.Op == node.OpRepair && e.granted() {
		out.Repaired |= Of(e.Node)
	}
}

func (c *Claim) listen(out *Ready) {
	if !c.listening {
		c.listening, out.Listen = true, true
	}
}

// see stores a node's answer in the last round.
func (c *Claim) see(e *Event) {
	m := &c.nodes[e.Node]
	switch e.Fault {
	case Contended:
		if m.got = NotSent; e.Op == node.OpAcquire {
			m.got = Busy
		}
	case Unsent, TimedOutUnsent:
		m.got = NotSent
	case Broken:
		m.got = Failed
	case TimedOut:
		m.got = Late
	case Invalid:
		m.got = Unusable
	default:
		r := &e.Reply
		m.got, m.status, m.rank, m.wakes, m.left, m.fence, m.now, m.holder, m.server =
			Replied, r.Status, uint16(min(r.Rank, math.MaxUint16)), r.Wakes, leftOf(r.Left), r.Fence, r.Now.UnixMicro(), hashOf(r.Value), serverOf(r)
		m.needsMark = r.NeedsMark
		m.lease = r.Status == node.Held && IsLease(r.Value)
		m.misfit = e.Misfit
		if c.clockless &^= Of(e.Node); r.Clockless {
			c.clockless |= Of(e.Node)
		}
		m.share, m.free = r.Share, r.Free
	}
}

// distrust does not count grants that a server gave by a marker of another epoch
// than the highest that is known of its node: another server had taken its place,
// and may have granted the lock. An answer can show that of a node that granted
// before.
func (c *Claim) distrust(v View) {
	for i := range c.cfg.Nodes {
		m := &c.nodes[i]
		if m.said(node.Granted) && m.server.epoch() != 0 && m.server.epoch() != epochBits(v.Epoch(i)) {
			m.status, m.needsMark = node.Quarantined, true
			c.partial.granted &^= Of(i)
		}
	}
}

// Judged returns what the last answer of node i is taken for: a grant that the claim
// distrusts, for that of a node that has to be marked, with that quarantine.
func (c *Claim) Judged(i int, r node.Reply, quarantine time.Duration) node.Reply {
	if r.Status == node.Granted && c.nodes[i].said(node.Quarantined) {
		return node.Reply{Status: node.Quarantined, Marker: node.Marker{Reason: node.ReasonChanged, NeedsMark: true}, Left: quarantine, Now: r.Now}
	}
	return r
}

// count counts an answer in the round in flight.
func (c *Claim) count(v View, e *Event, out *Ready) {
	c.see(e)
	c.distrust(v)
	c.confirm(e)
	m := &c.nodes[e.Node]
	if m.said(node.Granted) && c.countedTwice(e.Node, c.all()) {
		m.got = Unusable
	}
	c.round.awaited &^= Of(e.Node)
	c.maybeSettle(v, out)
}

// countedTwice reports whether the server behind node i also granted as another
// node: an address can lead to another server at any time.
func (c *Claim) countedTwice(i int, nodes Set) bool {
	j := c.SameServer(i)
	return j >= 0 && nodes.Has(j)
}

// SameServer returns the node that granted and is the same server as node i; -1
// if there is none.
func (c *Claim) SameServer(i int) int {
	for j := range c.cfg.Nodes {
		other := &c.nodes[j]
		if j != i && c.nodes[i].server.id() != 0 && other.said(node.Granted) && other.server.id() == c.nodes[i].server.id() {
			return j
		}
	}
	return -1
}

// maybeSettle ends the round in flight if its outcome is decided.
func (c *Claim) maybeSettle(v View, out *Ready) {
	t := c.tally()
	if c.answeredAll() || c.round.decided(t) {
		c.settle(v, out)
		return
	}
	c.round.shorten(v.Now(), t, c.cfg.Patience)
}

func (c *Claim) answeredAll() bool { return c.round.sent&c.pending() == 0 }

// pending returns the nodes that were not asked, or have not answered.
func (c *Claim) pending() Set { return c.where(func(m *member) bool { return m.got == Pending }) }

func (c *Claim) tally() Tally {
	t := Tally{Nodes: c.cfg.Nodes}
	slot, _ := c.agreed(c.all())
	for i := range c.cfg.Nodes {
		switch m := &c.nodes[i]; {
		case m.got == Pending:
		case m.got.failed():
			t.Failed++
		case m.got == Busy:
			t.Refused++
		case m.status == node.Granted && c.counts(m, slot):
			t.Granted++
		default:
			t.Refused++
			if m.status == node.Quarantined || m.status == node.Misconfigured {
				t.Unfit++
			}
			if m.quarantined() {
				t.Quarantined++
			}
		}
	}
	return t
}

// settle ends the round in flight with the answers so far.
func (c *Claim) settle(v View, out *Ready) {
	if v.Now() >= c.round.limit {
		late := c.round.sent & c.pending()
		for i := range c.cfg.Nodes {
			if late.Has(i) {
				c.nodes[i].got = Late
			}
		}
	}
	c.round.Over, c.round.Won, c.round.End = true, c.tally().Won(), v.Now()
	out.News = append(out.News, RoundOver)
	switch c.state {
	case Attaching:
		c.settleAttach(v, out)
	case Extending:
		c.settleExtend(v, out)
	case Releasing:
		c.settleRelease(v, out)
	default:
		c.settleAcquire(v, out)
	}
}
