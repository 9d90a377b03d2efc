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
	// Adapting: the client adopts cluster parameters, or nodes are being
	// marked, before the round is repeated.
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

// Config is what a claim must know about its client and its caller. Only the
// cluster parameters can change, when they are adopted.
type Config struct {
	Nodes   int
	TTL     time.Duration
	Window  time.Duration
	Tokens  bool
	Guarded bool // the restart guard is on
	// Unbounded says that the caller set no limit at all. KeepAlive has the
	// lease be extended in the background.
	Unbounded bool
	KeepAlive bool
	// Share is what the caller asks for. Its slot is the one that it has, if
	// another process acquired it.
	Share node.Share

	Limit      time.Duration // how long a node may take to answer
	Patience   time.Duration // how long a round waits for a minority
	RetryDelay time.Duration

	// The caller's limits.
	Tries int
	Until Instant // when the wait is over; 0 for never

	// The lease.
	MaxHold time.Duration
	// Keep is how long the lock stays taken from its acquisition on, even if it
	// is released before.
	Keep time.Duration
}

// Claim is one value's claim on one name: from its first request until nothing
// of it is left on any node. It is a plain value, and Handle is all that
// changes it.
type Claim struct {
	cfg   Config
	value string
	state State
	// successor is the state in which the next value continues.
	successor State
	// unsure is set once an acquisition or repair will never be answered: it
	// may be executed at any time.
	unsure bool
	// share is what is asked for or held. Its slot changes until the claim has
	// won.
	share node.Share
	nodes [MaxNodes]member

	// The requests. seq numbers them. inFlight counts acquisitions and repairs
	// without an answer.
	seq      uint32
	inFlight int32

	// The tokens. floor is what the nodes' fences require in this try. fence is
	// the highest fence that a node reported and that may be near the others',
	// above the token of the last request with Once. earlier has the tokens
	// that were proposed before proposed, the last one.
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
}

// NewClaim returns a claim for a caller that has just arrived.
func NewClaim(v View, cfg Config, value string) Claim {
	c := Claim{cfg: cfg, value: value, share: cfg.Share}
	c.wait.missed = v.Missed()
	c.wait.came = v.Time().UnixMicro()
	if cfg.Tries != 1 && v.ClockKnown() {
		c.takeTicket(v)
	}
	return c
}

// HeldElsewhere returns the claim of a lease that another process acquired.
func HeldElsewhere(cfg Config, value string, token node.Token) Claim {
	return Claim{cfg: cfg, value: value, token: token, share: cfg.Share}
}

// Successor returns the claim that continues after a Replace, under a new
// value. The ticket, and with it the place in the queues, stays the same.
func (c *Claim) Successor(value string) Claim {
	n := Claim{
		cfg: c.cfg, value: value, share: c.share, state: c.successor, token: c.token, floor: c.floor, fence: c.fence,
		round: c.round, verdict: c.verdict, wait: c.wait,
		seq: c.seq, // so that the runner can tell older answers from newer ones
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

// Token returns the token of the lease, or the one proposed last.
func (c *Claim) Token() node.Token { return c.token }

// Rounds returns how many times the nodes were asked for the lock.
func (c *Claim) Rounds() int { return int(c.wait.rounds) }

// Round returns the last round and its tally.
func (c *Claim) Round() (Round, Tally) { return c.round, c.tally() }

// Outcome returns the outcome of a node in the last round.
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

// Handle handles an event and appends its effects to out. An event that does
// not matter in the claim's state changes nothing.
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
			c.keep(v)
			out = c.ask(v, node.OpExtend, c.all(), out)
		}
	case Extend:
		out = c.extend(v, out)
	case Downgrade:
		out = c.downgrade(v, out)
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
