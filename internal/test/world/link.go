package world

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// link is the connection of a client to a server. Messages arrive in the order in
// which they were sent, or not at all.
type link struct {
	cut       bool
	out, back time.Duration // when the last one arrives
}

// resource is the number of the resource among the servers.
const resource = -1

// flight is a message on its way.
type flight struct {
	client, server int
	what           string
	back           bool // it is an answer
	from, to       time.Duration
}

// Hit is a message that has arrived since the last state of the page.
type Hit struct {
	Client, Server int
	Good           bool
}

func (w *World) fly(client, server int, what string, d time.Duration) *flight {
	f := &flight{client: client, server: server, what: what, from: w.now, to: w.now + d}
	w.flights = append(w.flights, f)
	return f
}

func (w *World) land(f *flight) {
	w.flights = slices.DeleteFunc(w.flights, func(other *flight) bool { return other == f })
}

// maxHits is how many arrivals are kept for the page, which takes them.
const maxHits = 200

func (w *World) hit(f *flight, good bool) {
	if len(w.hits) < maxHits {
		w.hits = append(w.hits, Hit{f.client, f.server, good})
	}
}

// inOrder is when a message arrives that is sent now: after those before it.
func (w *World) inOrder(last *time.Duration) time.Duration {
	*last = max(*last+1, w.now+w.trip())
	return *last - w.now
}

// Cut cuts the link to a server, by its number from 1 on.
func (c *Client) Cut(number int) {
	if l := &c.links[number-1]; !l.cut {
		l.cut = true
		c.w.say("fault", "The link between %s and server %d is cut", c.Name, number)
	}
}

// Mend mends the link.
func (c *Client) Mend(number int) {
	if l := &c.links[number-1]; l.cut {
		l.cut = false
		c.w.say("fault", "The link between %s and server %d works again", c.Name, number)
		c.reconnected(number - 1)
	}
}

// works reports whether messages between a client and a server arrive.
func (c *Client) works(i int) bool { return !c.links[i].cut && !c.w.Servers[i].down }

// reconnected tells the client that notifications may have been lost.
func (c *Client) reconnected(i int) {
	c.w.after(c.w.trip(), func() {
		if c.works(i) {
			c.deliver(func() {
				c.missed++
				if cl := c.claim; cl != nil {
					cl.handle(protocol.Event{Kind: protocol.Wake, Node: i, Wake: node.Wake{Kind: node.WakeMissed}})
				}
			})
		}
	})
}

// notify sends a notification of a server.
func (c *Client) notify(i int, cl *claim, wake node.Wake) {
	f := c.w.fly(c.number, i, "notify", c.w.inOrder(&c.links[i].back))
	f.back = true
	c.w.at(f.to, func() {
		c.w.land(f)
		if c.works(i) {
			c.w.hit(f, true)
			c.deliver(func() {
				if wake.Kind == node.WakeTurn {
					c.turns++
				}
				cl.handle(protocol.Event{Kind: protocol.Wake, Node: i, Wake: wake})
			})
		}
	})
}

// call sends a request to a server, and calls done with the answer, or with why
// there is none.
func (c *Client) call(i int, req node.Request, limit time.Duration, done func(node.Reply, protocol.Fault)) {
	req.Name, req.Guard, req.Retention, req.Epoch = Name, &c.w.guard, retention, c.members[i].epoch
	c.send(i, req.Op, limit, func(s *Server) node.Reply { return s.apply(req) }, done)
}

// send sends what a server is to execute.
func (c *Client) send(i int, op node.Op, limit time.Duration, execute func(*Server) node.Reply, done func(node.Reply, protocol.Fault)) {
	w := c.w
	w.sent++
	sent, over := c.time(), false
	finish := func(reply node.Reply, fault protocol.Fault) {
		if over {
			return
		}
		if over = true; fault == protocol.NoFault {
			c.learn(i, op, sent, reply)
		}
		done(reply, fault)
	}
	w.after(limit, func() { c.deliver(func() { finish(node.Reply{}, protocol.TimedOut) }) })
	f := w.fly(c.number, i, op.String(), w.inOrder(&c.links[i].out))
	w.at(f.to, func() {
		w.land(f)
		if !c.works(i) {
			return
		}
		reply := execute(w.Servers[i])
		w.hit(f, reply.Status == node.Granted)
		b := w.fly(c.number, i, op.String(), w.inOrder(&c.links[i].back))
		b.back = true
		w.at(b.to, func() {
			w.land(b)
			if c.works(i) {
				c.deliver(func() { finish(reply, protocol.NoFault) })
			}
		})
	})
}
