package nodetest

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// reserveClaims are about tokens that an extension reserves for its holder.
var reserveClaims = []claim{
	{"a reserve raises the fence to its last token", func(p *probe) {
		token := p.token(0)
		p.expect(node.Granted, p.a, p.acquire("one", token))
		p.reserve(true, p.reserving("one", token+5, 3))
		p.fence(token + 8)
		p.holderToken(token + 5)
		p.reserve(true, p.reserving("one", token+5, 3)) // a copy
		p.fence(token + 8)
		p.expect(node.Stale, p.a, p.acquire("one", token+8-1))
		p.expect(node.Granted, p.a, p.release("one", token+6))
		p.fence(token + 8)
		p.expect(node.Stale, p.b, p.acquire("two", token+8))
		p.expect(node.Granted, p.b, p.acquire("two", token+9))
		p.expectHeld("two", p.a, p.reserving("one", token+20, 3))
		p.fence(token + 9)
	}},
	{"a reserve at or below the fence is not confirmed", func(p *probe) {
		token := p.token(0)
		ttl := 4 * p.h.Unit // long enough for two requests to a slow store
		p.expect(node.Granted, p.a, withTTL(p.acquire("one", token), ttl))
		p.expect(node.Held, p.b, p.release("two", token+10))
		p.reserve(false, p.reserving("one", token+10, 3))
		p.fence(token + 10)
		p.holderToken(token)
		p.outlast(ttl) // it was extended all the same
		p.heldBy("one")
		p.reserve(true, p.reserving("one", token+11, 3))
		p.fence(token + 14)
	}},
	{"a reserve out of the window is not confirmed", func(p *probe) {
		token := p.token(0)
		p.expect(node.Granted, p.a, p.acquire("one", token))
		p.reserve(false, p.reserving("one", p.token(2*window), 3))
		p.reserve(false, p.reserving("one", token+1, node.Token(2*window/time.Microsecond)))
		p.fence(token)
	}},
	{"nothing is reserved for a reader, or without a token", func(p *probe) {
		token := p.token(0)
		p.expect(node.Granted, p.a, p.acquire("one", token))
		p.reserve(false, p.reserving("one", 0, 3))
		req := p.reserving("one", token+5, 3)
		req.Share = node.Share{Mode: node.Shared}
		p.reserve(false, req)
		p.reserve(false, req)
		p.fence(token)
	}},
}

// reserveQueueClaims are about the waiter that a reserve shows.
var reserveQueueClaims = []claim{
	{"a reserve shows the first ticket in the queue", func(p *probe) {
		token := p.token(0)
		p.expect(node.Granted, p.a, p.acquire("one", token))
		if reply := p.reserve(true, p.reserving("one", token+5, 3)); reply.Next != 0 {
			p.Errorf("with nobody in the queue, the first has the ticket %d", reply.Next)
		}
		second, first := p.wait("two", token, 2*time.Millisecond), p.wait("three", token, time.Millisecond)
		p.expectRank(node.Held, 1, p.b, second)
		p.expect(node.Held, p.b, first)
		if reply := p.reserve(true, p.reserving("one", token+15, 3)); reply.Next != first.Ticket {
			p.Errorf("the first in the queue has the ticket %d, want %d", reply.Next, first.Ticket)
		}
	}},
}

// reserving is an extension that reserves tokens.
func (p *probe) reserving(value string, token, reserve node.Token) node.Request {
	req := p.extend(value, token)
	req.Reserve = reserve
	return req
}

// reserve sends an extension that reserves tokens, which must be confirmed or not.
func (p *probe) reserve(want bool, req node.Request) node.Reply {
	p.Helper()
	reply := p.expect(node.Granted, p.a, req)
	if reply.Confirmed != want {
		p.Fatalf("%d tokens from %d on: reserved %v, want %v (the fence is %d)", uint64(req.Reserve), uint64(req.Token), reply.Confirmed, want, uint64(reply.Fence))
	}
	return reply
}
