package world

import (
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// marking is how a client brings servers back into service that have lost their
// marker, or have one from before a restart: it reads all markers, and marks
// those that protocol.ToMark names. Their quarantine begins then.
type marking struct {
	runs    bool
	count   int              // how many times a server was marked
	idle    protocol.Instant // no marking begins before
	waiting []*claim
}

// awaitMark continues a claim when the marking that runs is over.
func (c *Client) awaitMark(cl *claim) {
	if c.marks.runs {
		c.marks.waiting = append(c.marks.waiting, cl)
		return
	}
	cl.handle(protocol.Event{Kind: protocol.Marked, Changed: c.marks.count != cl.marks})
}

// mark marks the servers that have to be.
func (c *Client) mark() {
	mk := &c.marks
	if mk.runs || c.uptime() < mk.idle {
		return
	}
	mk.runs = true
	seen := make([]protocol.Seen, Servers)
	c.markAll(protocol.All(Servers), node.MarkRead, func(i int, r node.Reply) {
		state := protocol.Says(&node.MarkReply{Status: r.Status, Left: r.Left, Marker: r.Marker})
		seen[i] = protocol.See(&c.w.guard, protocol.Believed(state, r.Epoch, c.members[i].epoch), r.Status != node.Misconfigured, "", 0)
	}, func() {
		before := mk.count
		c.markAll(protocol.ToMark(seen, 0), node.MarkWrite, func(i int, r node.Reply) {
			if r.Status == node.Quarantined {
				mk.count++
				c.w.say("good", "%s has noticed that server %d may have forgotten locks: it is quarantined for %s", c.Name, i+1, seconds(r.Left))
			}
		}, func() {
			if mk.count == before {
				mk.idle = c.uptime() + time.Second
			}
			waiting := mk.waiting
			mk.runs, mk.waiting = false, nil
			for _, cl := range waiting {
				c.awaitMark(cl)
			}
		})
	})
}

// markAll sends a MarkRequest to servers, calls each with every answer, and then done.
func (c *Client) markAll(set protocol.Set, how node.Mark, each func(int, node.Reply), done func()) {
	left := set.Count()
	if left == 0 {
		done()
		return
	}
	for i := range Servers {
		if !set.Has(i) {
			continue
		}
		req := node.MarkRequest{Mark: how, Guard: &c.w.guard, Epoch: c.members[i].epoch}
		c.send(i, node.OpMark, limit, func(s *Server) node.Reply {
			r := s.state.Mark(s.clock(), req)
			return node.Reply{Status: r.Status, Left: r.Left, Now: r.Now, Marker: r.Marker}
		}, func(r node.Reply, fault protocol.Fault) {
			if fault == protocol.NoFault {
				each(i, r)
			}
			if left--; left == 0 {
				done()
			}
		})
	}
}
