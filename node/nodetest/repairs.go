package nodetest

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// repairClaims are about giving a lock to a node that missed its acquisition.
func repairClaims() []claim {
	return []claim{
		{"a repair takes a free name and sets the fence", repairTakesFreeName},
		{"a repair with a token behind the window is granted", repairBehindTheWindow},
		{"a repair never takes what another holds", repairNeverSteals},
		{"a repair after the release of its own token is stale", repairAfterRelease},
		{"a repair keeps a higher fence", repairKeepsHigherFence},
		{"a repair that comes too late is stale", repairTooLate},
	}
}

func repairTakesFreeName(p *probe) {
	token := p.token(0)
	for range 2 { // repeating it is harmless
		p.wantFence(p.expect(node.Granted, p.a, p.repair("one", token)), token)
		p.fence(token)
	}
	p.expect(node.Held, p.b, p.acquire("two", token+1))
	p.expect(node.Granted, p.b, p.extend("one", token))
}

func repairBehindTheWindow(p *probe) {
	p.expect(node.Granted, p.a, p.repair("one", p.token(-3*outside)))
}

func repairNeverSteals(p *probe) {
	token := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("one", token))
	p.expect(node.Held, p.b, p.repair("two", token+1))
	p.expect(node.Granted, p.a, p.extend("one", token))
	p.fence(token)
}

// A repair that arrives after the release of the lock must not bring it back.
func repairAfterRelease(p *probe) {
	token := p.token(0)
	p.expect(node.Absent, p.a, p.release("one", token))
	p.expect(node.Stale, p.a, p.repair("one", token))
	p.free()
}

// A contender may have asked the node meanwhile, and given up.
func repairKeepsHigherFence(p *probe) {
	token := p.token(0)
	p.expect(node.Granted, p.b, p.acquire("two", token+5))
	p.expect(node.Granted, p.b, p.release("two", token+5))
	p.wantFence(p.expect(node.Granted, p.a, p.repair("one", token)), token+5)
	p.fence(token + 5)
}

// A repair that was in flight for long must not bring back a lock that was
// released, even if others have held the lock since and have raised the fence.
func repairTooLate(p *probe) {
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
}
