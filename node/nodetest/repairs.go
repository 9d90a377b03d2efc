package nodetest

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// repairClaims are about giving a lock to a node that missed its acquisition.
var repairClaims = []claim{
	{"a repair takes a free name and sets the fence", func(p *probe) {
		token := p.token(0)
		for range 2 { // repeating it is harmless
			p.wantFence(p.expect(node.Granted, p.a, p.repair("one", token)), token)
			p.fence(token)
		}
		p.expect(node.Held, p.b, p.acquire("two", token+1))
		p.expect(node.Granted, p.b, p.extend("one", token))
	}},
	{"a repair with a token behind the window is granted", func(p *probe) {
		p.expect(node.Granted, p.a, p.repair("one", p.token(-3*outside)))
	}},
	{"a repair never takes what another holds", func(p *probe) {
		token := p.take("one")
		p.expect(node.Held, p.b, p.repair("two", token+1))
		p.expect(node.Granted, p.a, p.extend("one", token))
		p.fence(token)
	}},
	// A repair that arrives after the release of the lock must not bring it back,
	// whether the node had the lock or not, and though others have had it since.
	{"a repair after a release that forbids it is stale", func(p *probe) {
		token := p.token(0)
		p.expect(node.Absent, p.a, forbidding(p.release("one", token), p.long()))
		p.expect(node.Stale, p.a, p.repair("one", token))
		p.expect(node.Granted, p.b, p.acquire("two", token+5), forbidding(p.release("two", token+5), p.long()))
		p.expect(node.Stale, p.a, p.repair("one", token), p.repair("two", token+5))
		p.free()
	}},
	{"a release forbids repairs of its own value alone, and for a while", func(p *probe) {
		token := p.token(0)
		p.expect(node.Absent, p.a, forbidding(p.release("one", token), p.h.Unit))
		p.expect(node.Absent, p.a, forbidding(p.release("two", token), p.long()))
		p.expect(node.Granted, p.b, p.repair("three", token), p.release("three", token))
		p.pass(2 * p.h.Unit)
		p.expect(node.Stale, p.a, p.repair("two", token))
		p.expect(node.Granted, p.a, p.repair("one", token))
	}},
	// The key may have expired while the holder could not reach the node. A
	// contender may have asked the node meanwhile, and given up.
	{"a repair is granted whatever the fence, and does not lower it", func(p *probe) {
		token := p.token(0)
		p.takeAndRelease(p.a, "one", token)
		p.wantFence(p.expect(node.Granted, p.a, p.repair("one", token)), token)
		p.expect(node.Granted, p.a, p.release("one", token))
		p.takeAndRelease(p.b, "two", token+5)
		p.wantFence(p.expect(node.Granted, p.a, p.repair("one", token)), token+5)
		p.fence(token + 5)
	}},
	// A repair that was in flight for long must not bring back a lock that was
	// released, even if others have held the lock since and have raised the fence.
	{"a repair that comes too late is stale", func(p *probe) {
		token := p.token(0)
		p.expect(node.Absent, p.a, p.release("one", token))
		now := p.expect(node.Granted, p.b, p.acquire("two", token+5)).Now
		p.expect(node.Granted, p.b, p.release("two", token+5))
		req := p.repair("one", token)
		req.Until = now.Add(-time.Millisecond)
		p.expect(node.Stale, p.a, req)
		p.free()
		req.Until = now.Add(time.Hour)
		p.expect(node.Granted, p.a, req)
	}},
}

// forbidding is a release that forbids repairs.
func forbidding(req node.Request, d time.Duration) node.Request {
	req.NoRepair = d
	return req
}
