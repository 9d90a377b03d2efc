package nodetest

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// tokenClaims are about which proposed tokens a node accepts.
var tokenClaims = []claim{
	{"a token at or below the fence is stale", func(p *probe) {
		token := p.token(0)
		p.takeAndRelease(p.a, "one", token)
		for _, low := range []node.Token{token, token - 1, token - 1000} {
			p.wantFence(p.expect(node.Stale, p.b, p.acquire("two", low)), token)
			p.wantFence(p.free(), token)
		}
		p.expect(node.Granted, p.b, p.acquire("two", token+1))
	}},
	{"a token behind the window is refused even with no fence", func(p *probe) {
		p.expect(node.Behind, p.a, p.acquire("one", p.token(-outside)))
		p.wantFence(p.free(), 0)

		old := p.token(-3 * outside)
		p.expect(node.Granted, p.a, withWindow(p.acquire("one", old), 6*outside), p.release("one", old))
		p.wantFence(p.expect(node.Behind, p.b, p.acquire("two", old+1)), old)
		p.wantFence(p.free(), old)
	}},
	{"a token ahead of the window is refused", func(p *probe) {
		p.expect(node.Ahead, p.a, p.acquire("one", p.token(outside)))
		p.wantFence(p.free(), 0)

		token := p.token(0)
		p.takeAndRelease(p.a, "one", token)
		p.wantFence(p.expect(node.Ahead, p.b, p.acquire("two", p.token(outside))), token)
		p.wantFence(p.free(), token)
	}},
	{"a token just above a fence far ahead is granted", func(p *probe) {
		far := p.token(time.Hour)
		p.expect(node.Granted, p.a, withWindow(p.acquire("one", far), 2*time.Hour), p.release("one", far))

		p.expect(node.Ahead, p.b, p.acquire("two", far+node.TokenLeap+1))
		p.wantFence(p.free(), far)
		for _, step := range []node.Token{1, node.TokenLeap} {
			far += step
			p.wantFence(p.expect(node.Granted, p.b, p.acquire("two", far)), far)
			p.expect(node.Granted, p.b, p.release("two", far))
		}
	}},
	{"only a node without a clock goes by that of others", func(p *probe) {
		far := p.token(3 * time.Hour)
		req := p.acquire("one", far)
		p.expect(node.Ahead, p.a, req)
		if req.Clock = time.UnixMicro(int64(far)); !p.h.Observes {
			if p.expect(node.Ahead, p.a, req).Clockless {
				p.Errorf("the reply says that the node has no clock")
			}
			return
		}
		reply := p.expect(node.Granted, p.a, req)
		if now := reply.Now; !reply.Clockless || !now.Equal(req.Clock) {
			p.Errorf("the reply has the clock %v, want %v and that it is not the node's", now, req.Clock)
		}
		// What is left of a time is the same on every clock.
		req = p.acquire("two", far+1)
		for _, clock := range []time.Time{{}, reply.Now.Add(-6 * time.Hour), reply.Now} {
			req.Clock = clock
			p.left(p.expectHeld("one", p.b, req), 0, p.long())
		}
	}},
	{"a token within the window is granted", func(p *probe) {
		for _, off := range []time.Duration{-window / 2, 0, window / 2} {
			token := p.token(off)
			p.takeAndRelease(p.a, "one", token)
			p.fence(token)
		}
	}},
	// The first proposal of a client whose clock is far ahead may arrive after the
	// second, correct one.
	{"asking again with a token ahead of the window is refused", func(p *probe) {
		token := p.take("one")
		p.expect(node.Ahead, p.b, p.acquire("one", p.token(outside)))
		p.fence(token)
		p.heldBy("one")
	}},
	{"held is answered before any fault of the token", func(p *probe) {
		token := p.take("one")
		for _, bad := range []node.Token{token, token - 1, p.token(-outside), p.token(outside)} {
			p.expectHeld("one", p.b, p.acquire("two", bad))
		}
		p.fence(token)
	}},
	{"token 0 neither checks nor touches the fence", func(p *probe) {
		p.wantFence(p.expect(node.Granted, p.a, p.acquire("one", 0)), 0)
		p.expect(node.Granted, p.a, p.extend("one", 0), p.release("one", 0))
		p.fence(0)

		token := p.take("one")
		p.expect(node.Granted, p.a, p.release("one", 0))
		p.expect(node.Granted, p.b, p.acquire("two", 0), p.acquire("two", 0), p.extend("two", 0))
		p.expect(node.Granted, p.b, p.release("two", 0))
		p.expect(node.Absent, p.b, p.release("two", 0))
		p.fence(token)
	}},
	{"tokens are exact to the last digit", func(p *probe) {
		sixteenDigits := p.token(0)
		largest := node.MaxToken - 4
		for _, token := range []node.Token{sixteenDigits, largest} {
			wide := time.Duration(largest-sixteenDigits)*time.Microsecond + time.Hour
			p.expect(node.Granted, p.a, withWindow(p.acquire("one", token), wide), p.release("one", token))
			for range 4 {
				p.wantFence(p.expect(node.Stale, p.b, p.acquire("two", token)), token)
				token++
				p.wantFence(p.expect(node.Granted, p.b, p.acquire("two", token)), token)
				p.expect(node.Stale, p.a, p.acquire("two", token-1))
				p.expect(node.Granted, p.b, p.release("two", token))
				p.fence(token)
			}
		}
	}},
}
