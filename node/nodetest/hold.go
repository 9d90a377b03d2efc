package nodetest

import "github.com/redlatch/redlatch/node"

// holdClaims are about acquiring a name, keeping it and losing it.
var holdClaims = []claim{
	{"a refused caller learns who holds, and for how long", func(p *probe) {
		token := p.take("one")

		reply := p.expectHeld("one", p.b, p.acquire("two", token+1))
		p.left(reply, 0, p.long())
		p.wantFence(reply, token)

		p.pass(p.h.Unit)
		later := p.expect(node.Held, p.b, p.acquire("two", token+1))
		p.left(later, 0, reply.Left-p.h.Unit+p.tolerance)
	}},
	{"the node's clock runs on", func(p *probe) {
		first := p.free().Now
		p.pass(p.h.Unit)
		granted := p.expect(node.Granted, p.a, p.acquire("one", 0)).Now
		if ran := granted.Sub(first); ran < p.h.Unit-p.tolerance {
			p.Errorf("the node's clock went on by %v in %v", ran, p.h.Unit)
		}
		held := p.expect(node.Held, p.b, p.acquire("two", 0)).Now
		if held.Before(granted.Add(-p.tolerance)) {
			p.Errorf("the node's clock went back from %v to %v", granted, held)
		}
	}},
	{"asking again is granted and refreshes", func(p *probe) {
		p.expect(node.Granted, p.a, withTTL(p.acquire("one", 0), p.long()/2))
		p.expect(node.Granted, p.b, p.acquire("one", 0))
		p.left(p.heldBy("one"), p.long()/2, p.long())
	}},
	{"releasing twice is harmless", func(p *probe) {
		p.takeAndRelease(p.a, "one", 0)
		p.expect(node.Absent, p.a, p.release("one", 0))
		p.expect(node.Granted, p.b, p.acquire("two", 0))
		p.expect(node.Held, p.a, p.release("one", 0))
		p.heldBy("two")
	}},
	{"extend lengthens", func(p *probe) {
		short := 5 * p.h.Unit
		p.expect(node.Granted, p.a, withTTL(p.acquire("one", 0), short))
		p.expect(node.Granted, p.b, p.extend("one", 0))
		p.left(p.heldBy("one"), short, p.long())
		p.outlast(short)
		p.heldBy("one")
	}},
	{"extend by another value changes nothing", func(p *probe) {
		half := p.long() / 2
		p.expect(node.Granted, p.a, withTTL(p.acquire("one", 0), half))
		p.expectHeld("one", p.b, p.extend("two", 0))
		p.left(p.heldBy("one"), 0, half)
	}},
	{"extend never creates", func(p *probe) {
		p.expect(node.Absent, p.a, p.extend("one", 0))
		p.free()

		p.expect(node.Granted, p.a, withTTL(p.acquire("one", 0), p.h.Unit))
		p.outlast(p.h.Unit)
		p.expect(node.Absent, p.a, p.extend("one", 0))
		p.free()

		p.takeAndRelease(p.a, "one", 0)
		p.expect(node.Absent, p.a, p.extend("one", 0))
		p.free()
	}},
	{"a lock expires by itself", func(p *probe) {
		p.expect(node.Granted, p.a, withTTL(p.acquire("one", 0), p.h.Unit))
		p.outlast(p.h.Unit)
		p.free()
		p.expect(node.Granted, p.b, p.acquire("two", 0))
		p.expect(node.Held, p.a, p.acquire("one", 0))
	}},
	{"inspect changes nothing", func(p *probe) {
		asked := p.inspect()
		asked.Value, asked.Token, asked.Wait = "one", p.token(0), true
		p.expect(node.Absent, p.a, asked)
		p.wantFence(p.free(), 0)

		half := p.long() / 2
		p.expect(node.Granted, p.a, withTTL(p.acquire("one", 0), half))
		p.expectHeld("one", p.a, asked)
		asked.Value = "two"
		if reply := p.expect(node.Held, p.b, asked); reply.Rank != 0 {
			p.Errorf("inspecting put the caller into the queue, at %d", reply.Rank)
		}
		reply := p.heldBy("one")
		p.wantFence(reply, 0)
		p.left(reply, 0, half)
	}},
	{"closing a node leaves its locks", func(p *probe) {
		p.expect(node.Granted, p.a, p.acquire("one", 0))
		p.close(&p.a)
		p.expectHeld("one", p.b, p.acquire("two", 0))
		p.expect(node.Granted, p.b, p.release("one", 0))
	}},
}
