package nodetest

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// breakClaims are about taking a name away from its holder.
var breakClaims = []claim{
	{"after a break the next token must be above its own", func(p *probe) {
		token := p.take("one")
		for range 2 { // repeating it is harmless
			p.wantFence(p.expect(node.Granted, p.b, p.breakUp(token+5)), token+5)
			p.wantFence(p.free(), token+5)
		}
		p.expect(node.Stale, p.a, p.acquire("two", token+5))
		p.expect(node.Granted, p.a, p.acquire("two", token+6))
	}},
	// Between an operator's look and the break, another client may have taken the
	// name.
	{"a break leaves alone what was granted its token or a higher one", func(p *probe) {
		token := p.take("one")
		for _, t := range []node.Token{token - 1, token} {
			p.wantFence(p.expect(node.Stale, p.b, p.breakUp(t)), token)
			p.heldBy("one")
			p.fence(token)
		}
	}},
	{"a broken holder can neither extend nor release", func(p *probe) {
		token := p.take("one")
		p.expect(node.Granted, p.b, p.breakUp(token+1))
		p.expect(node.Absent, p.a, p.extend("one", token))
		p.expect(node.Granted, p.b, p.acquire("two", token+2))
		p.expect(node.Held, p.a, p.extend("one", token), p.release("one", token))
		p.heldBy("two")
		p.fence(token + 2)
	}},
	// The holder has other nodes, which the break reaches later. Meanwhile it must not
	// get this one back.
	{"a holder that was broken is not repaired", func(p *probe) {
		token := p.take("one")
		p.expect(node.Granted, p.b, p.breakUp(token+5))
		p.expect(node.Stale, p.a, p.repair("one", token))
		p.takeAndRelease(p.b, "two", token+6)
		p.expect(node.Stale, p.a, p.repair("one", token+4))
		p.free()
	}},
	{"a holder is not repaired on a node that was free when it was broken", func(p *probe) {
		token := p.token(0)
		p.wantFence(p.expect(node.Granted, p.b, p.breakUp(token+5)), token+5)
		p.expect(node.Stale, p.a, p.repair("one", token), p.acquire("one", token+5))
		p.wantFence(p.free(), token+5)
	}},
	// A break that too few nodes got leaves its token to the next holder.
	{"a holder with the token of a break is repaired", func(p *probe) {
		token := p.take("one")
		p.expect(node.Granted, p.b, p.breakUp(token+5))
		p.expect(node.Granted, p.a, p.repair("two", token+5))
		p.heldBy("two")
	}},
	{"a break ahead of the window changes nothing", func(p *probe) {
		token := p.take("one")
		p.wantFence(p.expect(node.Ahead, p.b, p.breakUp(p.token(outside))), token)
		p.heldBy("one")
		p.fence(token)
		// But directly above the fence there is always room.
		p.expect(node.Granted, p.a, p.release("one", token))
		wide := withWindow(p.acquire("one", p.token(outside)), 2*outside)
		p.expect(node.Granted, p.a, wide)
		p.expect(node.Granted, p.b, p.breakUp(wide.Token+1))
		p.free()
	}},
	{"a break without a token leaves the fence alone", func(p *probe) {
		token := p.take("one")
		p.expect(node.Granted, p.b, p.breakUp(0))
		p.free()
		p.fence(token)
	}},
	{"a break takes one name alone", func(p *probe) {
		token := p.token(0)
		other := p.name + "/other"
		p.expect(node.Granted, p.a, p.acquire("one", token), withName(p.acquire("one", token), other))
		p.expect(node.Granted, p.b, p.breakUp(token+1))
		p.wantFence(p.expect(node.Held, p.b, withName(p.inspect(), other)), token)
		p.expect(node.Granted, p.a, withName(p.release("one", token), other))
	}},
	{"a break leaves waiters their places", func(p *probe) {
		first := p.line(p.a)
		p.expectRank(node.Held, 1, p.a, p.wait("one", first, 1*time.Millisecond))
		p.expectRank(node.Held, 2, p.b, p.wait("two", first, 2*time.Millisecond))
		p.expect(node.Granted, p.b, p.breakUp(0))
		p.expectRank(node.Reserved, 2, p.b, p.wait("two", first, 2*time.Millisecond))
		p.expect(node.Granted, p.a, p.wait("one", first, 1*time.Millisecond))
	}},
}
