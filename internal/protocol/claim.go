package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// State is where a claim is in its life.
type State uint8

// The states of a claim; the package comment draws them.
const (
	// New: nothing was sent yet.
	New State = iota
	// Asking: a round is in flight.
	Asking
	// Adapting: the client adopts cluster parameters, or nodes are being marked,
	// before the round is repeated.
	Adapting
	// Waiting: between two rounds. Nodes may offer the lock one by one.
	Waiting
	// Held: the claim is a lease.
	Held
	// Ending: the claim is over. What is left of it on the nodes is removed.
	Ending
	// Gone: no request of the claim is in flight any more.
	Gone
)

// String returns the state in one word.
func (s State) String() string {
	return [...]string{"new", "asking", "adapting", "waiting", "held", "ending", "gone"}[s]
}

// Config is what a claim must know of its client and its caller. It is fixed
// but for cluster parameters that are adopted.
type Config struct {
	Nodes   int
	TTL     time.Duration
	Window  time.Duration
	Tokens  bool
	Guarded bool // the restart guard is on

	Limit      time.Duration // how long a node may take to answer
	Patience   time.Duration // how long a minority is waited for
	RetryDelay time.Duration

	// The caller's bounds.
	Tries     int
	Until     Instant // when the wait is over; 0 for never
	Unbounded bool    // the caller set no bound at all

	// The lease.
	KeepAlive bool
	MaxHold   time.Duration
}

// holding is what a node may have of the claim.
type holding uint8

const (
	// nothing: the node has nothing of the claim.
	nothing holding = iota
	// leftover: the node may have a key, from a request without an answer or
	// one that is being undone, or a place in its queue.
	leftover
	// granted: the node granted the lock.
	granted
)

// member is one node, as the claim knows it.
type member struct {
	// What the node may have of the claim.
	holds    holding
	inFlight bool // the last acquisition or repair has had no answer
	released bool // a release was sent
	offered  bool // it offered the lock while nobody could ask for it
	unseen   bool // it answered the last round while the claim was busy

	// Its outcome in the last round, brought up to date by later answers.
	got    Outcome
	status node.Status
	misfit Misfit
	wakes  bool // it will notify us
	remark bool // it has to be marked
	lease  bool // the holder is a lease, and not a foreign client

	seq    uint32 // the number of the last acquisition or repair
	rank   int32
	left   time.Duration
	fence  node.Token
	now    int64 // its clock, in microseconds
	holder name  // the holder's value
	server name
}

// name stands for a text that is only ever compared: a hash, so that a claim
// stays small. 0 is no text. Two texts with one hash would have a claim yield, or
// a node not count, where it need not.
type name uint64

func nameOf(text string) name {
	if text == "" {
		return 0
	}
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return name(max(h, 1))
}

// Claim is one value's claim on one name: from its first request until nothing
// of it is left on any node. It is a plain value, and Handle is all that changes
// it.
type Claim struct {
	cfg   Config
	value string
	state State
	nodes [MaxNodes]member

	// The requests. seq numbers them. inFlight counts acquisitions and repairs
	// without an answer; unsure is set once one will never have any: they may be
	// executed at any time.
	seq      uint32
	inFlight int32
	unsure   bool

	// The tokens. floor is what the nodes' fences ask for in this try, fence the
	// highest that a node reported and that may be near the others', above that
	// of the last request with Once. earlier is the tokens that were proposed
	// before proposed, the last.
	token    node.Token
	floor    node.Token
	fence    node.Token
	above    node.Token
	earlier  proposals
	proposed node.Token

	round     Round
	proposals int32 // rounds of this try so far
	verdict   Verdict
	listening bool

	wait   waiting
	gather gathering
	yield  yielding
	lease  lease

	// successor is the state in which the next value goes on.
	successor State
}

// NewClaim returns a claim for a caller that has just come.
func NewClaim(v View, cfg Config, value string) Claim {
	c := Claim{cfg: cfg, value: value}
	c.wait.missed = v.Missed()
	c.wait.came = v.Time().UnixMicro()
	if cfg.Tries != 1 && v.ClockKnown() {
		c.takeTicket(v)
	}
	return c
}

// HeldElsewhere returns the claim of a lease that another process acquired.
func HeldElsewhere(cfg Config, value string, token node.Token) Claim {
	return Claim{cfg: cfg, value: value, token: token}
}

// Successor returns the claim that goes on after a Replace, under a new value.
// The ticket, and with it the place in the queues, stays the same.
func (c *Claim) Successor(value string) Claim {
	n := Claim{
		cfg: c.cfg, value: value, state: c.successor, token: c.token, floor: c.floor, fence: c.fence,
		round: c.round, verdict: c.verdict, wait: c.wait,
	}
	n.round.Seq = 0
	for i := range c.cfg.Nodes {
		m := &n.nodes[i]
		*m = c.nodes[i]
		m.holds, m.inFlight, m.released, m.seq, m.offered, m.unseen = nothing, false, false, 0, false, false
	}
	return n
}

// Configure adopts other cluster parameters.
func (c *Claim) Configure(cfg Config) { c.cfg = cfg }

// State returns where the claim is in its life.
func (c *Claim) State() State { return c.state }

// TTL returns the time to live.
func (c *Claim) TTL() time.Duration { return c.cfg.TTL }

// Value returns the claim's value.
func (c *Claim) Value() string { return c.value }

// Token returns the token: of the lease, or proposed last.
func (c *Claim) Token() node.Token { return c.token }

// Rounds returns how many times the nodes were asked for the lock.
func (c *Claim) Rounds() int { return int(c.wait.rounds) }

// Round returns the last round, and what came of it.
func (c *Claim) Round() (Round, Tally) { return c.round, c.tally() }

// Outcome returns what is known of a node in the last round.
func (c *Claim) Outcome(i int) Outcome { return c.nodes[i].got }

// Timer returns when the claim wants a Timer event; 0 for never.
func (c *Claim) Timer() Instant {
	switch c.state {
	case Asking:
		return c.round.timer()
	case Waiting:
		return c.waitTimer()
	case Held:
		return c.leaseTimer()
	case Ending:
		if c.round.Op == node.OpRelease && !c.round.Over {
			return c.round.timer()
		}
	}
	return 0
}

// Handle takes in an event and appends to out what has to be done. An event that
// the claim's state has no use for changes nothing.
func (c *Claim) Handle(v View, e *Event, out []Effect) []Effect {
	switch e.Kind {
	case Answer:
		out = c.answered(v, e, out)
	case Wake:
		out = c.woken(v, e, out)
	case Timer:
		out = c.timeout(v, out)
	case Begin:
		if c.state == New {
			out = c.begin(v, out)
		}
	case Resume:
		if c.wait.waited && c.state <= Waiting {
			out = c.listen(out)
		}
		switch c.state {
		case New:
			out = c.begin(v, out)
		case Waiting:
			out = c.waitOn(v, out)
		}
	case Configured:
		if c.state == Adapting {
			out = c.configured(v, e.Changed, out)
		}
	case Marked:
		if c.state == Adapting {
			out = c.marked(v, e.Changed, out)
		}
	case Cancel:
		if c.state <= Waiting {
			out = c.giveUp(v, out)
		}
	case Attach:
		if c.state == New {
			c.state = Asking
			out = c.ask(v, node.OpExtend, c.all(), out)
		}
	case Extend:
		out = c.extend(v, out)
	case Release:
		out = c.release(v, out)
	case Detach:
		out = c.detach(out)
	}
	if c.state == Ending && c.inFlight == 0 && (c.round.Over || c.round.Op != node.OpRelease) {
		c.state = Gone
	}
	return out
}

func (c *Claim) all() Set { return All(c.cfg.Nodes) }

// timeout handles the timer of each state.
func (c *Claim) timeout(v View, out []Effect) []Effect {
	now := v.Now()
	if at := c.Timer(); at == 0 || now < at {
		return out // the timer was moved meanwhile
	}
	switch c.state {
	case Asking:
		return c.settle(v, out)
	case Waiting:
		return c.waitOver(v, out)
	case Held:
		return c.leaseTimeout(v, out)
	case Ending:
		return c.settle(v, out)
	}
	return out
}

// request returns a request about the claim. The runner adds what no decision
// depends on: the name, the marker to compare, how long to keep the fence.
func (c *Claim) request(op node.Op) node.Request {
	return node.Request{
		Op: op, Value: c.value, TTL: c.cfg.TTL, Token: c.token, Window: c.cfg.Window,
		Wait: c.wait.queued, Ticket: c.wait.ticket,
	}
}

// ask begins a round: it sends op to the given nodes at once.
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
	c.round = Round{Op: op, Seq: c.seq, Start: now, asked: nodes, awaited: nodes &^ suspects, limit: now + c.cfg.Limit}
	req := c.request(op)
	if op == node.OpRelease {
		req = c.releaseRequest(v)
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

// skipped reports whether a node was left out of the round for being suspect:
// the round may then be decided before any answer comes.
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

// record notes what a node may have of the claim after an answer to an
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

// see keeps what a node answered in the last round.
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
			Replied, r.Status, int32(r.Rank), r.Wakes, r.Left, r.Fence, r.Now.UnixMicro(), nameOf(r.Value), nameOf(r.Server)
		m.remark = NeedsMark(*r)
		m.lease = r.Status == node.Held && IsLease(r.Value)
		m.misfit = e.Misfit
	}
}

// count takes an answer into the round that is in flight.
func (c *Claim) count(v View, e *Event, out []Effect) []Effect {
	c.see(e)
	m := &c.nodes[e.Node]
	if m.got == Replied && m.status == node.Granted && c.countedTwice(e.Node, c.all()) {
		m.got = Unusable
	}
	c.round.awaited &^= Of(e.Node)
	return c.maybeSettle(v, out)
}

// countedTwice reports that the server behind node i granted as another of the
// nodes too: an address can be led to another server at any time.
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
	for i := range c.cfg.Nodes {
		switch m := &c.nodes[i]; {
		case m.got == Pending:
		case m.got.failed():
			t.Failed++
		case m.status == node.Granted:
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

// settle ends the round in flight with what has come.
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

// answered takes in a node's answer.
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

// acquired takes in the answer to an acquisition or a repair that was recorded.
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
	case Ending, Gone:
		return c.late(v, e, out)
	}
	return out
}
