package nodetest

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// placeClaims are for nodes that keep each place by itself. In them node a has the
// places of waiters that are silent.
var placeClaims = []claim{
	{"a node that does not take its turn is skipped after it, and has no places", func(p *probe) {
		first := p.silentNode()
		one := p.wait("one", first, 3*time.Millisecond)
		p.left(p.expectRank(node.Reserved, 3, p.b, one), 0, p.turn()) // until it is to look again
		p.pass(p.turn() + p.tolerance)
		p.expectRank(node.Granted, 0, p.b, one)
		if l := p.look(p.name); l.Waiting != 1 || l.Waiters[0].Value != "two" {
			p.Errorf("%v wait, want \"two\" alone", l.Waiters)
		}
		// They were slow, and ask again.
		if p.expect(node.Held, p.a, p.wait("mute", first, 2*time.Millisecond)); p.h.Arrival {
			return
		}
		p.expectRank(node.Held, 1, p.a, p.wait("silent", first, 1*time.Millisecond))
		p.expectRank(node.Held, 3, p.b, p.wait("two", first, 4*time.Millisecond))
		p.expect(node.Granted, p.b, p.release("one", 0))
		p.expectRank(node.Granted, 0, p.a, p.wait("silent", first, 1*time.Millisecond))
	}},
	{"a turn is counted from when the name is free", func(p *probe) {
		first := p.silentNode()
		p.expect(node.Granted, p.b, p.repair("repaired", 0))
		p.pass(p.turn() + p.tolerance)
		p.expect(node.Held, p.b, p.wait("one", first, 3*time.Millisecond))
		p.expectRank(node.Held, 1, p.a, p.wait("silent", first, 1*time.Millisecond))
		p.expect(node.Granted, p.b, p.release("repaired", 0))
		p.expectRank(node.Reserved, 3, p.b, p.wait("one", first, 3*time.Millisecond))
		p.expectRank(node.Granted, 0, p.a, p.wait("silent", first, 1*time.Millisecond))
	}},
	{"a place needs no renewal", func(p *probe) {
		first := p.line(p.a)
		p.expectRank(node.Held, 1, p.a, p.wait("patient", first, 1*time.Millisecond))
		p.expectRank(node.Held, 2, p.b, p.wait("two", first, 2*time.Millisecond))
		for range 2 {
			p.pass(node.WaiterLease + p.tolerance)
			p.expectRank(node.Held, 2, p.b, p.wait("two", first, 2*time.Millisecond))
		}
		p.expect(node.Granted, p.a, p.release("holder", 0))
		p.expect(node.Reserved, p.b, p.wait("two", first, 2*time.Millisecond))
		p.expectRank(node.Granted, 0, p.a, p.wait("patient", first, 1*time.Millisecond))
	}},
}

// placeWakeClaims are for those of them that notify waiters.
var placeWakeClaims = []claim{
	{"a release wakes the first in the queue alone", func(p *probe) {
		e := p.listen(p.a)
		first := p.line(p.a, "one", "two", "three")
		p.expect(node.Granted, p.b, p.release("holder", 0))
		e.expect(turn("one"))
		p.expect(node.Granted, p.a, p.wait("one", first, time.Millisecond))
		e.expect()
		p.expect(node.Granted, p.a, p.release("one", 0))
		e.expect(turn("two"))
	}},
	// It is too far behind to take the name itself.
	{"whoever asks when a turn is over wakes the next node", func(p *probe) {
		e := p.listen(p.b)
		first := p.silentNode()
		p.pass(p.turn() + p.tolerance)
		e.expect()
		p.expect(node.Reserved, p.b, p.wait("two", first, 4*time.Millisecond))
		e.expect(turn("one"))
		p.expectRank(node.Granted, 0, p.b, p.wait("one", first, 3*time.Millisecond))
	}},
	{"readers let in each other", func(p *probe) {
		e := p.listen(p.a)
		first := p.line(p.a)
		values := []string{"one", "two", "three"}
		wait := func(i int) node.Request {
			return waiting(shared(p.acquire(values[i], 0)), first, time.Duration(i)*time.Millisecond)
		}
		for i := range values {
			p.expectRank(node.Held, i+1, p.a, wait(i))
		}
		p.expect(node.Granted, p.a, p.release("holder", 0))
		e.expect(turn("one"))
		p.expect(node.Granted, p.a, wait(0))
		e.expect(turn("two"))
		p.expect(node.Granted, p.a, wait(1))
		e.expect(turn("three"))
		p.expect(node.Granted, p.a, wait(2))
		e.expect()
		p.holders(3)
	}},
}

// turn is how long a name is kept for a waiter.
func (p *probe) turn() time.Duration {
	if p.h.Wakes {
		return node.TurnLease
	}
	return node.WaiterLease
}

// silentNode returns when the name is kept for a waiter of node a, which has another one. Two of node
// b are behind them.
func (p *probe) silentNode() (first node.Token) {
	p.Helper()
	first = p.line(p.a, "silent", "mute")
	p.expectRank(node.Held, 3, p.b, p.wait("one", first, 3*time.Millisecond))
	p.expectRank(node.Held, 4, p.b, p.wait("two", first, 4*time.Millisecond))
	p.expect(node.Granted, p.b, p.release("holder", 0))
	return first
}
