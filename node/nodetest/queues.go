package nodetest

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/node"
)

// queueClaims are for nodes that keep a queue of waiters.
var queueClaims = []claim{
	{"a caller that does not wait is not queued", func(p *probe) {
		first := p.line(p.a)
		p.expectRank(node.Held, 0, p.b, p.acquire("passer-by", 0))
		p.expectRank(node.Held, 1, p.a, p.wait("one", first, time.Millisecond))
		p.expectRank(node.Held, 0, p.b, p.acquire("passer-by", 0))
	}},
	{"a free name is granted to the head alone", func(p *probe) {
		first := p.line(p.a)
		p.expectRank(node.Held, 1, p.a, p.wait("one", first, 1*time.Millisecond))
		p.expectRank(node.Held, 2, p.b, p.wait("two", first, 2*time.Millisecond))
		p.expect(node.Granted, p.a, p.release("holder", 0))

		p.expectRank(node.Reserved, 0, p.b, p.acquire("passer-by", 0))
		p.expectRank(node.Reserved, 2, p.b, p.wait("two", first, 2*time.Millisecond))
		p.expectRank(node.Reserved, 3, p.a, p.wait("three", first, 3*time.Millisecond))
		p.free()
		p.expectRank(node.Granted, 0, p.a, p.wait("one", first, 1*time.Millisecond))
		p.heldBy("one")
	}},
	{"a place in the queue does not survive the grant", func(p *probe) {
		first := p.line(p.a)
		p.expectRank(node.Held, 1, p.a, p.wait("one", first, time.Millisecond))
		p.expect(node.Granted, p.a, p.release("holder", 0))
		p.expectRank(node.Granted, 0, p.a, p.wait("one", first, time.Millisecond))
		// It expires and is not released, because a release would also remove it
		// from the queue.
		p.expectRank(node.Granted, 0, p.a, withTTL(p.extend("one", 0), p.h.Unit))
		p.outlast(p.h.Unit)
		p.expectRank(node.Granted, 0, p.b, p.acquire("passer-by", 0))
	}},
	// Many waiters are gone, and the name is free. If each kept the name for its
	// own lease, the waiter behind them would wait for as many seconds.
	{"waiters that do not renew are dropped together", func(p *probe) {
		const silent, step = 12, node.WaiterLease / 5
		first := p.line(p.a)
		for i := range silent {
			p.expectRank(node.Held, i+1, p.a, p.wait(fmt.Sprint("silent ", i), first, time.Duration(i+1)*time.Millisecond))
			// On a slow machine the head's place must not lapse before all are
			// queued.
			p.expectRank(node.Held, 1, p.a, p.wait("silent 0", first, time.Millisecond))
		}
		living := p.wait("living", first, time.Minute)
		p.expectRank(node.Held, silent+1, p.b, living)
		p.expect(node.Granted, p.a, p.release("holder", 0))
		for waited := time.Duration(0); p.do(p.b, living).Status != node.Granted; waited += step {
			if waited > 3*node.WaiterLease {
				p.Fatalf("%d waiters that are gone keep a free name from the next for more than %v", silent, waited)
			}
			p.pass(step)
		}
	}},
	{"a release takes the waiter out at once", func(p *probe) {
		first := p.line(p.a)
		p.expectRank(node.Held, 1, p.a, p.wait("one", first, 1*time.Millisecond))
		p.expectRank(node.Held, 2, p.b, p.wait("two", first, 2*time.Millisecond))
		p.expectRank(node.Held, 0, p.a, p.release("one", 0))
		p.expectRank(node.Held, 1, p.b, p.wait("two", first, 2*time.Millisecond))

		p.expect(node.Granted, p.a, p.release("holder", 0))
		p.expectRank(node.Absent, 0, p.b, p.release("two", 0))
		p.expectRank(node.Granted, 0, p.b, p.acquire("passer-by", 0))
	}},
	// A request of an attempt that was given up may arrive after its release. It
	// must not take a place that nobody renews. Nor must one that is so old that its
	// release may be forgotten.
	{"a late request joins no queue", func(p *probe) {
		first := p.take("holder")
		p.expect(node.Held, p.a, forbidding(p.release("gone", 0), p.long()))
		p.expectRank(node.Held, 0, p.b, p.wait("gone", first, 1*time.Millisecond))
		late := p.wait("late", first, 1*time.Millisecond)
		late.Token = p.token(-2 * outside)
		p.expectRank(node.Held, 0, p.a, late)
		late.Token = 0
		p.expectRank(node.Held, 1, p.a, late)
		p.expect(node.Held, p.a, forbidding(p.release("late", 0), p.long()))
		p.expectRank(node.Held, 0, p.a, late)
		p.expectRank(node.Held, 1, p.b, p.wait("one", first, 2*time.Millisecond))
		if l := p.look(p.name); l.Waiting != 1 {
			p.Errorf("%d are listed, and one waits", l.Waiting)
		}
	}},
	// A copy of a request that was granted and released since looks like the first
	// request of another caller that came late. It may get a place, which nobody renews.
	{"the place of a copy lapses", func(p *probe) {
		first := p.token(0)
		granted := p.wait("one", first, 0)
		granted.Token = first
		p.expect(node.Granted, p.a, granted, p.release("one", first))
		p.expect(node.Granted, p.b, p.acquire("holder", first+1))
		p.expect(node.Held, p.a, granted)
		p.expect(node.Granted, p.b, p.release("holder", 0))
		p.pass(node.WaiterLease)
		p.expectRank(node.Granted, 0, p.b, p.wait("two", first, time.Millisecond))
		p.expect(node.Held, p.a, granted)
	}},
	{"queues are independent", func(p *probe) {
		first := p.token(0)
		other := p.name + "/other"
		p.expect(node.Granted, p.a, p.acquire("holder", 0), withName(p.acquire("holder", 0), other))
		p.expectRank(node.Held, 1, p.a, p.wait("one", first, 1*time.Millisecond))
		p.expectRank(node.Held, 1, p.b, withName(p.wait("two", first, 2*time.Millisecond), other))
		p.expect(node.Granted, p.a, p.release("holder", 0), withName(p.release("holder", 0), other))
		p.expectRank(node.Granted, 0, p.b, withName(p.wait("two", first, 2*time.Millisecond), other))
		p.expectRank(node.Granted, 0, p.a, p.wait("one", first, 1*time.Millisecond))
	}},
}

// ticketClaims are for nodes that go by tickets.
var ticketClaims = []claim{
	{"the queue is ordered by ticket and value, not by arrival", func(p *probe) {
		first := p.line(p.a)
		p.expectRank(node.Held, 1, p.a, p.wait("late", first, 9*time.Millisecond))
		p.expectRank(node.Held, 1, p.b, p.wait("early b", first, time.Millisecond))
		// The same ticket as the one before: the value decides.
		p.expectRank(node.Held, 1, p.a, p.wait("early a", first, time.Millisecond))
		p.expectRank(node.Held, 4, p.b, p.wait("a latest", first, 10*time.Millisecond))

		turn := []string{"early a", "early b", "late", "a latest"}
		after := []time.Duration{time.Millisecond, time.Millisecond, 9 * time.Millisecond, 10 * time.Millisecond}
		holder := "holder"
		for i, next := range turn {
			p.expect(node.Granted, p.a, p.release(holder, 0))
			for j := len(turn) - 1; j > i; j-- {
				p.expectRank(node.Reserved, j-i+1, p.b, p.wait(turn[j], first, after[j]))
			}
			p.expectRank(node.Granted, 0, p.b, p.wait(next, first, after[i]))
			holder = next
		}
	}},
}

// listQueueClaims are for nodes on which a waiter has to renew its place.
var listQueueClaims = []claim{
	{"a waiter that does not renew is dropped", func(p *probe) {
		const step = node.WaiterLease * 6 / 10
		first := p.line(p.a)
		p.expectRank(node.Held, 1, p.a, p.wait("silent", first, 1*time.Millisecond))
		p.expectRank(node.Held, 2, p.b, p.wait("two", first, 2*time.Millisecond))
		p.pass(step)
		p.expectRank(node.Held, 2, p.b, p.wait("two", first, 2*time.Millisecond))
		p.pass(step)
		p.expectRank(node.Held, 1, p.b, p.wait("two", first, 2*time.Millisecond))
		p.expect(node.Granted, p.a, p.release("holder", 0))
		p.expectRank(node.Granted, 0, p.b, p.wait("two", first, 2*time.Millisecond))
	}},
}

// wait is an acquire that queues, by a waiter that arrived this long after the
// first.
func (p *probe) wait(value string, first node.Token, after time.Duration) node.Request {
	return waiting(p.acquire(value, 0), first, after)
}

// expectRank checks the status and the place in the queue.
func (p *probe) expectRank(want node.Status, rank int, n node.Node, req node.Request) node.Reply {
	p.Helper()
	reply := p.expect(want, n, req)
	if reply.Rank != rank && !(p.h.Places && rank > 3 && reply.Rank > rank) {
		p.Fatalf("%v by %q (%v): the rank is %d, want %d", req.Op, req.Value, want, reply.Rank, rank)
	}
	return reply
}
