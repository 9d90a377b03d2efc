package nodetest

import "github.com/redlatch/redlatch/node"

// holderClaims are about the token that a node reports for the holder. It is
// the token that the holder was granted with, not the fence, which others may
// have raised since.
var holderClaims = []claim{
	// A client that gave up raises the fence while another holds the name.
	{"a holder is reported with its own token, however high the fence", func(p *probe) {
		token := p.take("one")
		p.holderToken(token)
		for i := range node.Token(2) { // the second time it is raised again
			raised := token + 5*(i+1)
			p.wantHolderToken(p.expect(node.Held, p.b, p.release("two", raised)), token)
			p.fence(raised)
			p.holderToken(token)
			p.wantHolderToken(p.expect(node.Held, p.b, p.acquire("two", raised+1)), token)
		}
		p.expect(node.Granted, p.a, p.extend("one", token))
		p.holderToken(token)
		p.expect(node.Stale, p.a, p.acquire("one", token))
		for _, again := range []node.Token{token + 10, token + 11} { // the first is at the fence: it holds the name
			p.wantFence(p.expect(node.Granted, p.a, p.acquire("one", again)), again)
			p.holderToken(again)
		}
		p.expect(node.Granted, p.a, p.release("one", token))
		p.wantHolderToken(p.free(), 0)
		p.fence(token + 11)
		// The fence is still enforced.
		p.expect(node.Stale, p.b, p.acquire("two", token+11))
		p.expect(node.Granted, p.b, p.acquire("two", token+12))
	}},
	{"the next holder is reported with its own token, or without one", func(p *probe) {
		token := p.token(0)
		ttl := 4 * p.h.Unit // long enough for a request to a slow store
		p.expect(node.Granted, p.a, withTTL(p.acquire("one", token), ttl))
		p.expect(node.Held, p.b, p.release("two", token+5))
		p.outlast(ttl)
		p.expect(node.Granted, p.b, p.acquire("two", token+6))
		p.holderToken(token + 6)
		p.expect(node.Granted, p.b, p.release("two", 0), p.acquire("three", 0))
		p.holderToken(0)
		p.expect(node.Held, p.a, p.release("one", token+9))
		p.holderToken(0)
		p.fence(token + 9)
	}},
}

// holderToken checks the token of the holder, as both nodes report it.
func (p *probe) holderToken(want node.Token) {
	p.Helper()
	for _, n := range []node.Node{p.a, p.b} {
		p.wantHolderToken(p.expect(node.Held, n, p.inspect()), want)
	}
}

func (p *probe) wantHolderToken(reply node.Reply, want node.Token) {
	p.Helper()
	if reply.HolderToken != want {
		p.Fatalf("the reply (%v) has the holder's token %d, want %d (the fence is %d)",
			reply.Status, uint64(reply.HolderToken), uint64(want), uint64(reply.Fence))
	}
}
