package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// State is where a claim is in its life.
type State uint8

// The states of a claim; the package comment draws them. Before Held the claim
// wants the lock, after Extending it is over.
const (
	// New: nothing was sent yet.
	New State = iota
	// Asking: a round of acquisitions is in flight.
	Asking
	// Adopting: the client compares its cluster parameters with the nodes',
	// before the round is repeated or given up.
	Adopting
	// Marking: the client waits until nodes without a marker are marked, before
	// the round is repeated or given up.
	Marking
	// Waiting: between two rounds. Nodes may notify the claim, which then
	// requests the lock from each of them.
	Waiting
	// Yielding: between two rounds. Nodes were asked to free what they granted,
	// and have not all answered.
	Yielding
	// Attaching: an extension is in flight that resumes a lease of another
	// process.
	Attaching
	// Held: the claim is a lease.
	Held
	// Extending: the claim is a lease, and an extension is in flight.
	Extending
	// Releasing: the lease is over, and its release is in flight.
	Releasing
	// Ending: the claim is over. A request in flight may still leave a key, or a
	// place in a queue, which is then undone.
	Ending
	// Gone: no acquisition or repair awaits its answer any more.
	Gone
)

// String returns the state in one word.
func (s State) String() string {
	return [...]string{
		"new", "asking", "adopting", "marking", "waiting", "yielding", "attaching",
		"held", "extending", "releasing", "ending", "gone",
	}[s]
}

// IsHeld reports whether the claim is a lease.
func (s State) IsHeld() bool { return s == Held || s == Extending }

// IsOver reports whether the claim is no lease any more, or will never be one.
func (s State) IsOver() bool { return s > Extending }

// Wants reports whether the claim is no lease yet.
func (s State) Wants() bool { return s < Held }

// Config is what a claim must know about its client and its caller. Only the
// cluster parameters can change, by a Configured event.
type Config struct {
	Nodes  int
	TTL    time.Duration
	Window time.Duration
	// Unbounded says that the caller set no limit at all, and NoWait that the nodes
	// are asked once. With KeepAlive the lease is extended in the background.
	Unbounded bool
	NoWait    bool
	KeepAlive bool
	// Share is what the caller asks for. Its slot is the one that it has, if
	// another process acquired it.
	Share node.Share

	Limit      time.Duration // how long a node may take to answer
	Patience   time.Duration // how long a round waits for a minority
	RetryDelay time.Duration

	// The caller's limits. Until is when the wait is over, and Ends when the wait or
	// the caller's context is.
	Until, Ends When
	// QuarantineWait is how long a wait for nodes to leave quarantine does not
	// count.
	QuarantineWait time.Duration

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
	// unsure has the nodes on which an acquisition or repair will never be
	// answered: it may be executed at any time.
	unsure Set
	// clockless has the nodes that have no clock.
	clockless Set
	// released has the nodes to which a release was sent after all other requests.
	released Set
	// share is what is asked for or held. Its slot changes until the claim has
	// won.
	share     node.Share
	listening bool
	nodes     [MaxNodes]member

	// The requests. seq numbers them. inFlight counts acquisitions and repairs
	// without an answer.
	seq       uint32
	inFlight  int16
	proposals int8 // rounds of this try so far
	verdict   Verdict

	// The tokens. floor is what the nodes' fences require in this try. fence is
	// the highest fence that a node reported and that may be near the others'.
	// The token of the last yield is in above. proposed is the last one that was
	// proposed, and earlier has those before it.
	token    node.Token
	floor    node.Token
	fence    node.Token
	above    node.Token
	earlier  proposals
	proposed node.Token

	round Round

	wait    waiting
	partial partialGrants
	yield   yielding
	lease   lease
	pass    passing
}

// NewClaim returns a claim for a caller that has just arrived.
func NewClaim(v View, cfg Config, value string) Claim {
	return ClaimOf(Arrive(v, &cfg), cfg, value)
}

// ClaimOf returns a claim for a caller that arrived before, and has not asked.
func ClaimOf(a Arrival, cfg Config, value string) Claim {
	c := Claim{cfg: cfg, value: value, share: cfg.Share}
	c.wait.missed, c.wait.came, c.wait.ticket, c.wait.queued = a.missed, a.came, a.Ticket, a.Ticket != 0
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
		m.holds, m.inFlight, m.seq, m.notified, m.unapplied = nothing, 0, 0, false, false
	}
	return n
}

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

// Timer returns when the claim wants a Timer event.
func (c *Claim) Timer() When {
	switch c.state {
	case Asking, Attaching, Releasing:
		return At(c.round.timer())
	case Waiting:
		return At(min(c.wait.until, c.partial.enough.Or(c.wait.until)))
	case Yielding:
		return At(c.yield.until)
	case Held:
		return At(min(c.lease.deadline, c.lease.extendAt))
	case Extending:
		return At(min(c.lease.deadline, c.round.timer()))
	}
	return When{}
}

func (c *Claim) all() Set { return All(c.cfg.Nodes) }
