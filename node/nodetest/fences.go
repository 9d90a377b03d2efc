package nodetest

import "github.com/redlatch/redlatch/node"

// fenceClaims are about how long a fence lasts, and what raises it besides a
// grant.
var fenceClaims = []claim{
	{"extension renews the fence's retention", func(p *probe) {
		keep := 8 * p.h.Unit
		token := p.token(0)
		p.expect(node.Granted, p.a, withRetention(p.acquire("one", token), keep))
		p.pass(keep / 2)
		p.wantFence(p.expect(node.Granted, p.a, withRetention(p.extend("one", token), 4*keep)), token)
		p.wantFence(p.expect(node.Held, p.b, p.extend("two", token+5)), token)
		p.outlast(keep / 2)
		p.fence(token)
	}},
	{"a shorter retention does not shorten the fence's", func(p *probe) {
		token := p.take("one")
		brief := func(req node.Request) node.Request { return withRetention(req, p.h.Unit) }
		p.expect(node.Granted, p.a, brief(p.extend("one", token)))
		p.reserve(true, brief(p.reserving("one", token+1, 1)))
		p.expect(node.Held, p.b, brief(p.release("two", token+3)))
		p.expect(node.Granted, p.a, brief(p.release("one", token+4)))
		p.expect(node.Granted, p.b, brief(p.acquire("two", token+5)), brief(p.breakUp(token+6)))
		p.outlast(p.h.Unit)
		p.fence(token + 6)
	}},
	{"the fence outlives expiry", func(p *probe) {
		token := p.token(0)
		p.expect(node.Granted, p.a, withTTL(p.acquire("one", token), p.h.Unit))
		p.outlast(p.h.Unit)
		p.wantFence(p.free(), token)
		p.expect(node.Stale, p.b, p.acquire("two", token))
		p.expect(node.Granted, p.b, p.acquire("two", token+1))
	}},
	// An acquire whose caller has given up may still be in flight when its release
	// arrives. The node must refuse it, and no other acquire.
	{"a release that comes first makes the acquire stale", func(p *probe) {
		token := p.token(0)
		p.wantFence(p.expect(node.Absent, p.a, p.release("one", token)), token)
		p.expect(node.Stale, p.a, p.acquire("one", token))
		p.free()
		p.expect(node.Granted, p.b, p.acquire("two", token+1))
	}},
	// The holder may have proposed a higher token and given up before that proposal
	// reached this node: it is then still in flight.
	{"a release of what is held raises the fence", func(p *probe) {
		token := p.take("one")
		p.expect(node.Granted, p.a, p.release("one", token+5))
		p.expect(node.Stale, p.a, p.acquire("one", token+5))
		p.free()
	}},
	{"a release never lowers the fence", func(p *probe) {
		token := p.take("one")
		p.expect(node.Held, p.b, p.release("two", token-5))
		p.fence(token)
		p.expect(node.Granted, p.a, p.release("one", token))
		p.expect(node.Absent, p.b, p.release("two", token-5))
		p.fence(token)
	}},
	// A client whose clock is far ahead must not raise the fence out of the others'
	// window by giving up.
	{"a release ahead of the window raises nothing", func(p *probe) {
		p.wantFence(p.expect(node.Absent, p.a, p.release("one", p.token(outside))), 0)
		p.wantFence(p.free(), 0)
		token := p.token(0)
		p.expect(node.Granted, p.b, p.acquire("two", token))
		p.expect(node.Granted, p.b, p.release("two", p.token(outside)))
		p.wantFence(p.free(), token)
	}},
	// A proxy repeats a release, after its value has taken the name again.
	{"a release that is to be carried out once is", func(p *probe) {
		token := p.take("one")
		once := p.release("one", token+1)
		once.Once = true
		p.expect(node.Granted, p.a, once)
		p.expect(node.Granted, p.b, p.acquire("one", token+2))
		p.expect(node.Stale, p.a, once)
		p.heldBy("one")
		p.fence(token + 2)
		p.expect(node.Granted, p.a, p.release("one", token+1))
		p.free()
	}},
}

// spentFence leaves a fence whose retention is over.
func (p *probe) spentFence() node.Token {
	p.Helper()
	token := p.token(0)
	p.expect(node.Granted, p.a, withRetention(p.acquire("one", token), p.h.Unit))
	p.expect(node.Granted, p.a, withRetention(p.release("one", token), p.h.Unit))
	p.outlast(p.h.Unit)
	return token
}

// keptFenceClaims are for nodes that keep fences, forgottenFenceClaims for others.
var keptFenceClaims = []claim{
	{"a fence binds beyond its retention", func(p *probe) {
		token := p.spentFence()
		reply := p.expect(node.Stale, p.b, p.acquire("two", token))
		if reply.Fence < token {
			p.Errorf("the fence is said to be %d, want at least %d", uint64(reply.Fence), uint64(token))
		}
		p.expect(node.Granted, p.b, p.acquire("two", reply.Fence+1))
	}},
}

var forgottenFenceClaims = []claim{
	{"a fence is forgotten after its retention", func(p *probe) {
		token := p.spentFence()
		p.fence(0)
		p.expect(node.Granted, p.b, p.acquire("two", token-1))
	}},
}
