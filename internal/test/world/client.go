package world

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// Client is a client: one caller, its claims, its clock, and what it knows of
// the servers.
type Client struct {
	Name string

	w      *World
	number int
	skew   time.Duration // how far its wall clock is ahead
	links  [Servers]link
	claim  *claim   // the last one
	claims []*claim // those of which something may be left

	paused  bool
	acts    []func() // what the caller does when it continues
	pending []func() // what has arrived meanwhile

	// The job: how often the holder writes, and when it releases; 0 for never.
	every, hold time.Duration
	busy        bool
	writing     bool // a write has had no answer
	leaves      bool // and the client releases when it has

	// What it knows, as runner.Member does.
	members [Servers]member
	last    node.Token // that it has sent
	missed  uint32
	turns   int // how often it was notified of its turn
	marks   marking
}

// uptime is the client's monotonic clock, which nobody can set.
func (c *Client) uptime() protocol.Instant { return start + c.w.now }

// time is its wall clock.
func (c *Client) time() time.Time { return c.w.clock().Add(c.skew) }

// limit is how long a server may take to answer.
var limit = protocol.LimitFor(TTL)

func (c *Client) config() protocol.Config {
	return protocol.Config{
		Nodes: Servers, TTL: TTL, Window: Window, KeepAlive: true,
		Limit: limit, Patience: min(protocol.Patience, limit), RetryDelay: 200 * time.Millisecond,
		Until: protocol.At(c.uptime() + time.Hour), MaxHold: protocol.Unlimited,
		QuarantineWait: c.w.guard.Quarantine + protocol.OutagePatience,
	}
}

// value returns a value that was never used.
func (c *Client) value() string {
	var random [16]byte
	for i := range random {
		random[i] = byte(c.w.rand.Uint32())
	}
	return protocol.NewValue(random, c.Name)
}

// Ask makes the client ask for the lock, unless it does or has it already.
func (c *Client) Ask() {
	if c.paused || c.claim != nil && !c.claim.State().IsOver() {
		return
	}
	c.claims = slices.DeleteFunc(c.claims, func(cl *claim) bool { return cl.State() == protocol.Gone })
	c.w.say("", "%s asks for the lock", c.Name)
	c.begin(&claim{Claim: protocol.NewClaim(view{c}, c.config(), c.value())}, protocol.Begin)
}

func (c *Client) begin(cl *claim, first protocol.EventKind) {
	cl.c = c
	c.claim, c.claims = cl, append(c.claims, cl)
	cl.handle(protocol.Event{Kind: first})
}

// Release makes the client release the lock, when its last write is over, or stop
// waiting for it.
func (c *Client) Release() {
	switch cl := c.claim; {
	case c.paused || cl == nil || cl.State().IsOver():
	case c.writing:
		c.leaves = true
	case cl.State().IsHeld():
		cl.handle(protocol.Event{Kind: protocol.Release})
	default:
		cl.handle(protocol.Event{Kind: protocol.Cancel})
	}
}

// Write writes to the resource for the client, with its token.
func (c *Client) Write() { c.act(c.write) }

func (c *Client) write() {
	w, cl := c.w, c.claim
	if cl == nil || cl.Token() == 0 {
		return
	}
	c.writing = true
	f := w.fly(c.number, resource, "write", w.trip())
	w.at(f.to, func() {
		w.land(f)
		wr := w.Resource.take(c.Name, cl.Token())
		switch {
		case !wr.Accepted:
			w.say("good", "The resource refuses a write of %s: token %s is below %s", c.Name, wr.Token, w.Resource.Highest)
			if cl.valid() {
				w.breaks("%s holds the lock, and its write was refused", c.Name)
			}
		case wr.Stale:
			w.say("bad", "The resource takes a stale write of %s: a later holder has written before", c.Name)
		default:
			w.say("", "%s writes with token %s", c.Name, wr.Token)
		}
		w.hit(f, wr.Accepted)
		c.writing = false
		if c.leaves {
			c.leaves = false
			c.act(c.Release)
		}
	})
}

// Pause stops the process, as for a long garbage collection or a suspended machine.
func (c *Client) Pause() {
	if !c.paused {
		c.paused = true
		c.w.say("fault", "%s is paused", c.Name)
	}
}

// Resume continues the process: its caller where it stopped, before the client
// looks at the clock.
func (c *Client) Resume() {
	if !c.paused {
		return
	}
	c.paused = false
	c.w.say("fault", "%s continues", c.Name)
	all := append(c.acts, c.pending...)
	c.acts, c.pending = nil, nil
	for _, do := range all {
		do()
	}
}

// act lets the caller do something, now or when it continues.
func (c *Client) act(do func()) { c.unlessPaused(do, &c.acts) }

// deliver has something reach the client, now or when it continues.
func (c *Client) deliver(do func()) { c.unlessPaused(do, &c.pending) }

func (c *Client) unlessPaused(do func(), later *[]func()) {
	if c.paused {
		*later = append(*later, do)
	} else {
		do()
	}
}

// Skew sets the wall clock of the client.
func (c *Client) Skew(by time.Duration) {
	c.skew += by
	c.w.say("fault", "The clock of %s is set by %+.0f s", c.Name, by.Seconds())
}

// Holds reports whether the client has a valid lease.
func (c *Client) Holds() bool { return c.claim != nil && c.claim.valid() }

// Believes reports whether the client would say that it has the lock. One that
// is paused does not look at its clock.
func (c *Client) Believes() bool { return c.claim != nil && c.claim.State().IsHeld() }

// Waits reports whether the client is in the queues of a majority.
func (c *Client) Waits() bool {
	n := 0
	for _, s := range c.w.Servers {
		for _, waiter := range s.look().Waiters {
			if c.claimOf(waiter.Value) == c.claim {
				n++
			}
		}
	}
	return n >= protocol.Quorum(Servers)
}

// Token is the token of the client's lease, or the one it proposed last.
func (c *Client) Token() node.Token {
	if c.claim == nil {
		return 0
	}
	return c.claim.Token()
}

// claimOf returns the claim with a value; nil for none.
func (c *Client) claimOf(value string) *claim {
	for _, cl := range c.claims {
		if cl.Value() == value {
			return cl
		}
	}
	return nil
}

// work is what a holder does until it releases the lock or has lost it.
func (c *Client) work(cl *claim) {
	works := func() bool { return c.claim == cl && cl.State().IsHeld() }
	var write func()
	write = func() {
		if works() {
			c.write()
			c.w.after(c.every, func() { c.act(write) })
		}
	}
	if c.every > 0 {
		c.w.after(c.every/2, func() { c.act(write) })
	}
	if c.hold > 0 {
		c.w.after(c.hold, func() {
			c.act(func() {
				if works() {
					c.Release()
				}
			})
		})
	}
}
