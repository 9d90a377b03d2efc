package world

import (
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// claim runs a protocol.Claim, as runner.Claim does: it passes events to it, and
// does what they make ready.
type claim struct {
	protocol.Claim
	c      *Client
	armed  protocol.When // when its timer fires
	marks  int           // of the client, when it last asked
	waited bool          // and this was said
	failed bool          // an extension failed, and this was said
}

// valid reports whether the claim is a lease that its holder may rely on.
func (cl *claim) valid() bool { return cl.State().IsHeld() && cl.c.uptime() < cl.Deadline() }

func (cl *claim) handle(e protocol.Event) {
	var ready protocol.Ready
	cl.Handle(view{cl.c}, &e, &ready)
	cl.follow(&ready)
	cl.arm()
}

// arm sets the timer.
func (cl *claim) arm() {
	at := cl.Timer()
	if !at.IsSet() || at == cl.armed {
		return
	}
	cl.armed = at
	cl.c.w.at(at.Or(0)-start, func() { cl.c.deliver(cl.fire) })
}

// fire handles a timer, unless it was set to another time meanwhile.
func (cl *claim) fire() {
	if cl.Timer().Reached(cl.c.uptime()) {
		cl.armed = protocol.When{}
		cl.handle(protocol.Event{Kind: protocol.Timer})
	}
}

// follow does what is ready, in its order.
func (cl *claim) follow(ready *protocol.Ready) {
	c, w := cl.c, cl.c.w
	for _, what := range ready.News {
		cl.hear(what)
	}
	for i := range c.members {
		if ready.Repaired.Has(i) {
			w.say("", "Server %d has the lock of %s again", i+1, c.Name)
		}
	}
	for i := range ready.Send {
		cl.send(&ready.Send[i])
	}
	for _, e := range ready.Undo {
		c.undo(e.Node, e.Request, c.uptime()+TTL+limit+Window+Window/2)
	}
	if ready.Adopt {
		cl.handle(protocol.Event{Kind: protocol.Configured}) // all have the same parameters
	}
	if ready.AwaitMark {
		c.awaitMark(cl)
	}
	if ready.Replaced {
		c.begin(&claim{Claim: cl.Successor(c.value()), waited: cl.waited}, protocol.Resume)
	}
}

// hear says what the owner hears.
func (cl *claim) hear(what protocol.News) {
	c, w := cl.c, cl.c.w
	switch what {
	case protocol.Waits:
		if _, t := cl.Round(); !cl.waited {
			cl.waited = true
			if t.Shortage() == protocol.NoShortage {
				w.say("", "%s has to wait: the lock is held", c.Name)
			} else {
				w.say("", "%s has to wait: no majority can grant", c.Name)
			}
		}
	case protocol.Won:
		w.say("good", "%s has the lock, with token %s", c.Name, Text(cl.Token()))
		w.won(c, cl.Token())
		c.work(cl)
	case protocol.Refused:
		w.say("", "%s stops waiting", c.Name)
		c.askLater()
	case protocol.Extended:
		cl.failed = false
	case protocol.NotExtended:
		if !cl.failed {
			w.say("bad", "%s cannot extend the lock: no majority answers", c.Name)
			cl.failed = true
		}
	case protocol.Ended:
		c.leaves = false
		switch cl.Cause() {
		case protocol.WasReleased:
			w.say("", "%s releases the lock", c.Name)
		case protocol.TakenAway:
			w.say("bad", "%s has lost the lock: the servers say so", c.Name)
		default:
			w.say("bad", "The lease of %s is over, by its own clock", c.Name)
		}
		c.askLater()
	}
}

// askLater lets a client that works by itself ask again after a rest.
func (c *Client) askLater() {
	if c.busy {
		c.w.after(rest, func() { c.act(c.Ask) })
	}
}

// send sends a request. Its outcome is an event of the claim.
func (cl *claim) send(e *protocol.Message) {
	c, req := cl.c, e.Request
	answer := protocol.Event{Kind: protocol.Answer, Node: e.Node, Seq: e.Seq, Op: req.Op, Once: req.Once, Token: req.Token}
	if req.Op == node.OpAcquire {
		cl.marks, c.last = c.marks.count, req.Token
	}
	c.call(e.Node, req, limit, func(reply node.Reply, fault protocol.Fault) {
		answer.Reply, answer.Fault = reply, fault
		if reply.Status == node.Misconfigured {
			answer.Misfit = protocol.Compare(c.w.guard, reply.Guard, req.TTL)
		}
		cl.handle(answer)
	})
}

// undo sends a release in the background, again and again until it is confirmed
// or the key must have expired.
func (c *Client) undo(i int, req node.Request, until protocol.Instant) {
	c.call(i, req, limit, func(_ node.Reply, fault protocol.Fault) {
		if fault != protocol.NoFault && c.uptime() < until {
			c.w.after(time.Second/2, func() { c.deliver(func() { c.undo(i, req, until) }) })
		}
	})
}
