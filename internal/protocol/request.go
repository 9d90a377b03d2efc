package protocol

import (
	"math"

	"github.com/redlatch/redlatch/node"
)

// This file sends the requests of a claim, and handles their answers.

// request returns a request about the claim. The runner adds what no decision
// depends on: the name, the marker to compare, how long to keep the fence.
func (c *Claim) request(op node.Op) node.Request {
	return node.Request{
		Op: op, Share: c.share, Value: c.value, TTL: max(c.cfg.TTL, c.cfg.Keep), Token: c.token, Window: c.cfg.Window,
		Wait: c.wait.queued, Ticket: c.wait.ticket,
	}
}

// ask begins a round: it sends op to the given nodes concurrently.
func (c *Claim) ask(v View, op node.Op, nodes Set, out []Effect) []Effect {
	out = c.open(v, op, nodes, out)
	if c.skipped() {
		return c.maybeSettle(v, out)
	}
	return out
}

func (c *Claim) open(v View, op node.Op, nodes Set, out []Effect) []Effect {
	now := v.Now()
	if op == node.OpAcquire {
		c.note(nodes)
	} else {
		c.seq++
	}
	suspects := v.Suspects()
	c.round = Round{Op: op, Seq: c.seq, Start: now, asked: nodes, awaited: nodes &^ suspects, limit: now + c.cfg.Limit, share: c.share}
	req := c.request(op)
	switch op {
	case node.OpRelease:
		req = c.releaseRequest(v)
	case node.OpExtend:
		req.TTL = c.livesFor(v)
	}
	for i := range c.cfg.Nodes {
		m := &c.nodes[i]
		m.got, m.unseen = Pending, false
		if !nodes.Has(i) {
			continue
		}
		suspect := suspects.Has(i)
		if suspect && !v.Probe(i) {
			m.got = Skipped
			if op == node.OpAcquire {
				c.inFlight--
				m.inFlight = false
			}
			continue
		}
		out = append(out, Effect{Kind: Send, Node: i, Seq: c.seq, Request: req, Probe: suspect})
	}
	return out
}

// skipped reports whether a suspect node was not asked in this round: the round
// may then be decided before any answer comes.
func (c *Claim) skipped() bool {
	for i := range c.cfg.Nodes {
		if c.nodes[i].got == Skipped {
			return true
		}
	}
	return false
}

// note records that an acquisition or a repair is sent to the nodes.
func (c *Claim) note(nodes Set) {
	if c.inFlight == 0 && !c.unsure {
		c.earlier, c.proposed = proposals{}, 0 // no earlier request can be executed any more
	}
	c.seq++
	for i := range c.cfg.Nodes {
		if nodes.Has(i) {
			c.nodes[i].seq, c.nodes[i].inFlight = c.seq, true
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
// acquisition or a repair.
func (c *Claim) record(e *Event, out []Effect) []Effect {
	m := &c.nodes[e.Node]
	if m.seq == e.Seq {
		m.inFlight = false
	}
	c.inFlight--
	c.unsure = c.unsure || e.Fault.sent()
	switch {
	case e.Fault == NoFault && e.Reply.Status == node.Granted:
		m.holds = granted
	case e.Fault.sent(), e.Fault == NoFault && e.Reply.Rank > 0:
		m.holds = max(m.holds, leftover)
	}
	if e.Fault == NoFault && e.Reply.Rank > 0 && c.state < Ending {
		out = c.listen(out)
	}
	return out
}

func (c *Claim) listen(out []Effect) []Effect {
	if c.listening {
		return out
	}
	c.listening = true
	return append(out, Effect{Kind: Listen})
}

// see stores a node's answer in the last round.
func (c *Claim) see(e *Event) {
	m := &c.nodes[e.Node]
	switch e.Fault {
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
			Replied, r.Status, uint16(min(r.Rank, math.MaxUint16)), r.Wakes, r.Left, r.Fence, r.Now.UnixMicro(), nameOf(r.Value), nameOf(r.Server).short()
		m.remark = NeedsMark(*r)
		m.lease = r.Status == node.Held && IsLease(r.Value)
		m.misfit = e.Misfit
		m.share, m.free = r.Share, r.Free
	}
}

// count counts an answer in the round in flight.
func (c *Claim) count(v View, e *Event, out []Effect) []Effect {
	c.see(e)
	m := &c.nodes[e.Node]
	if m.got == Replied && m.status == node.Granted && c.countedTwice(e.Node, c.all()) {
		m.got = Unusable
	}
	c.round.awaited &^= Of(e.Node)
	return c.maybeSettle(v, out)
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
		if j != i && c.nodes[i].server != 0 && other.got == Replied && other.status == node.Granted && other.server == c.nodes[i].server {
			return j
		}
	}
	return -1
}

// maybeSettle ends the round in flight if its outcome is decided.
func (c *Claim) maybeSettle(v View, out []Effect) []Effect {
	t := c.tally()
	if c.answeredAll() || c.round.decided(t) {
		return c.settle(v, out)
	}
	c.round.shorten(v.Now(), t, c.cfg.Patience)
	return out
}

func (c *Claim) answeredAll() bool {
	for i := range c.cfg.Nodes {
		if c.round.asked.Has(i) && c.nodes[i].got == Pending {
			return false
		}
	}
	return true
}

func (c *Claim) tally() Tally {
	t := Tally{Nodes: c.cfg.Nodes}
	slot, _ := c.agreed(c.all())
	for i := range c.cfg.Nodes {
		switch m := &c.nodes[i]; {
		case m.got == Pending:
		case m.got.failed():
			t.Failed++
		case m.status == node.Granted && c.counts(m, slot):
			t.Granted++
		default:
			t.Refused++
			if m.status == node.Quarantined || m.status == node.Misconfigured {
				t.Unfit++
			}
		}
	}
	return t
}

// settle ends the round in flight with the answers so far.
func (c *Claim) settle(v View, out []Effect) []Effect {
	if v.Now() >= c.round.limit {
		for i := range c.cfg.Nodes {
			if c.round.asked.Has(i) && c.nodes[i].got == Pending {
				c.nodes[i].got = Late
			}
		}
	}
	c.round.Over, c.round.Won, c.round.End = true, c.tally().Won(), v.Now()
	out = append(out, Effect{Kind: RoundOver})
	switch {
	case c.round.Op == node.OpRelease:
		return c.freed(out)
	case c.round.Op == node.OpExtend && c.state == Asking:
		return c.attached(v, out)
	case c.round.Op == node.OpExtend:
		return c.extended(v, out)
	}
	return c.asked(v, out)
}

// answered handles a node's answer.
func (c *Claim) answered(v View, e *Event, out []Effect) []Effect {
	switch {
	case e.Op == node.OpAcquire || e.Op == node.OpRepair:
		out = c.record(e, out)
		if e.Op == node.OpRepair && e.Fault == NoFault && e.Reply.Status == node.Granted {
			out = append(out, Effect{Kind: Repaired, Node: e.Node})
		}
		return c.acquired(v, e, out)
	case e.Once:
		return c.yielded(v, e, out)
	case e.Op == node.OpRelease:
		if e.Fault != NoFault {
			out = append(out, Effect{Kind: CleanUp, Node: e.Node, Request: c.releaseRequest(v)})
		}
		if c.state == Ending && !c.round.Over && e.Seq == c.round.Seq {
			out = c.count(v, e, out)
		}
		return out
	case e.Op == node.OpExtend && e.Seq == c.round.Seq && c.round.Op == node.OpExtend:
		switch {
		case c.state > Held: // the lease ended first: its nodes are not repaired
		case !c.round.Over:
			return c.count(v, e, out)
		case c.state == Held:
			c.see(e)
			return c.extendedLate(v, e, out)
		}
	}
	return out
}

// acquired handles the answer to an acquisition or a repair, which record has
// recorded.
func (c *Claim) acquired(v View, e *Event, out []Effect) []Effect {
	switch c.state {
	case Asking:
		if e.Op == node.OpAcquire && c.round.Op == node.OpAcquire && e.Seq == c.round.Seq {
			return c.count(v, e, out)
		}
	case Adapting:
		if e.Seq == c.round.Seq && c.nodes[e.Node].got == Pending {
			c.see(e)
			c.nodes[e.Node].unseen = true
		}
	case Waiting:
		return c.taken(v, e, out)
	case Held:
		if e.Op == node.OpAcquire && e.Fault == NoFault && e.Reply.Status == node.Granted && c.misplaced(e.Reply.Share) {
			return c.sendRepair(v, e.Node, e.Reply.Now.UnixMicro(), out)
		}
	case Ending, Gone:
		return c.late(v, e, out)
	}
	return out
}
