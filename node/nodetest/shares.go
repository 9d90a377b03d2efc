package nodetest

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// shareClaims are for nodes that know the modes Shared and Slotted.
var shareClaims = []claim{
	{"readers hold a name together", func(p *probe) {
		t := p.token(0)
		r := p.expect(node.Granted, p.a, shared(p.acquire("one", t)))
		if r.Share != reader {
			p.Fatalf("the share is %v", r.Share)
		}
		p.expect(node.Granted, p.b, shared(p.acquire("two", t+1)))
		p.expect(node.Granted, p.a, shared(p.acquire("three", t+2)))
		p.first(3, "one", reader, t)
		p.fence(t + 2)
	}},
	{"a reader and a writer exclude each other", func(p *probe) {
		t := p.token(0)
		p.expect(node.Granted, p.a, shared(p.acquire("reader", t)))
		p.expect(node.Held, p.b, p.acquire("writer", t+1))
		p.expect(node.Granted, p.a, shared(p.release("reader", t)))
		p.free()
		p.expect(node.Granted, p.b, p.acquire("writer", t+2))
		r := p.expect(node.Held, p.a, shared(p.acquire("reader 2", t+3)))
		if r.Value != "writer" || r.Share != (node.Share{}) || r.Holders != 1 {
			p.Fatalf("held by %q, %v, %d holders", r.Value, r.Share, r.Holders)
		}
		p.expect(node.Granted, p.b, p.release("writer", t+2))
		p.expect(node.Granted, p.a, shared(p.acquire("reader 2", t+4)))
	}},
	{"each reader has its own expiry", func(p *probe) {
		p.expect(node.Granted, p.a, shared(withTTL(p.acquire("short", 0), p.h.Unit)))
		p.expect(node.Granted, p.a, shared(p.acquire("long", 0)))
		p.expect(node.Granted, p.a, shared(withTTL(p.acquire("brief", 0), p.h.Unit)))
		for _, req := range []node.Request{p.acquire("writer", 0), slotted(p.acquire("slot", 0), 2, 0)} {
			p.left(p.expect(node.Held, p.b, req), p.h.Unit, p.long())
		}
		p.outlast(p.h.Unit)
		p.expect(node.Granted, p.a, shared(p.extend("long", 0)))
		p.onlyHolder("long")
		p.expect(node.Absent, p.b, shared(p.extend("short", 0))) // there is room for a repair
		p.expect(node.Held, p.b, p.acquire("writer", 0))

		p.expect(node.Granted, p.a, shared(p.acquire("other", 0)))
		p.expect(node.Granted, p.b, shared(withTTL(p.extend("long", 0), p.h.Unit)))
		p.outlast(p.h.Unit)
		p.onlyHolder("other")
		p.expect(node.Granted, p.b, shared(withTTL(p.extend("other", 0), p.h.Unit)))
		p.outlast(p.h.Unit)
		p.expect(node.Granted, p.b, p.acquire("writer", 0))
	}},
	{"a reader extends and releases its own share alone", func(p *probe) {
		t := p.token(0)
		p.expect(node.Granted, p.a, shared(p.acquire("one", t)), shared(p.acquire("two", t+1)))
		p.expect(node.Absent, p.a, shared(p.extend("three", t)))
		p.expect(node.Held, p.a, shared(p.release("three", 0)))
		p.holders(2)
		p.expect(node.Granted, p.b, shared(p.release("one", t)))
		p.holders(1)
		p.expect(node.Granted, p.b, shared(p.extend("two", t+1)))
		p.expect(node.Held, p.b, shared(p.release("one", t)))
		p.expect(node.Granted, p.b, shared(p.release("two", t+1)))
		p.free()
	}},
	{"a reader needs a token above every writer's", func(p *probe) {
		t := p.token(0)
		p.takeAndRelease(p.a, "writer", t+5)
		p.expect(node.Absent, p.b, shared(p.release("early", t+1))) // it lowers nothing
		p.expect(node.Stale, p.a, shared(p.acquire("reader", t+4)))
		p.expect(node.Stale, p.b, shared(p.acquire("reader", t+5)))
		p.expect(node.Granted, p.b, shared(p.acquire("reader", t+6)))

		// The same after a slot that expires.
		p.expect(node.Granted, p.b, shared(p.release("reader", t+6)))
		p.expect(node.Granted, p.a, slotted(withTTL(p.acquire("slot", t+9), p.h.Unit), 2, 0))
		p.outlast(p.h.Unit)
		p.expect(node.Stale, p.a, shared(p.acquire("reader", t+9)))
		p.expect(node.Granted, p.a, shared(p.acquire("reader", t+10)))
	}},
	{"readers do not refuse each other's tokens", func(p *probe) {
		t := p.token(0)
		p.expect(node.Granted, p.a, shared(p.acquire("late", t+9)))
		p.expect(node.Granted, p.b, shared(p.acquire("early", t+1)))
		p.fence(t + 9)
		p.expect(node.Behind, p.b, shared(withWindow(p.acquire("old", t-node.Token(outside.Microseconds())), window)))
	}},
	{"a writer needs a token above every reader's", func(p *probe) {
		t := p.token(0)
		p.expect(node.Granted, p.a, shared(withTTL(p.acquire("reader", t+9), p.h.Unit)))
		p.outlast(p.h.Unit)
		p.expect(node.Stale, p.a, p.acquire("writer", t+9), slotted(p.acquire("slot", t+9), 2, 0))
		p.expect(node.Granted, p.b, p.acquire("writer", t+10))
	}},
	{"a release of a reader makes its acquire stale", func(p *probe) {
		t := p.token(0)
		p.expect(node.Absent, p.a, shared(p.release("reader", t+3)))
		p.expect(node.Stale, p.a, shared(p.acquire("reader", t+3)))
		p.expect(node.Granted, p.a, shared(p.acquire("other", t+4)))
		p.expect(node.Held, p.b, shared(p.release("reader", t+7)))
		p.expect(node.Stale, p.b, shared(p.acquire("reader", t+7)))
		p.holders(1)
	}},
	// The release of a reader needs a token above the fence, which another reader
	// may have raised.
	{"a release of a reader that is to be carried out once is", func(p *probe) {
		t := p.token(0)
		p.expect(node.Granted, p.a, shared(p.acquire("one", t)), shared(p.acquire("two", t+9)))
		release := shared(p.release("one", t+5))
		release.Once = true
		p.expect(node.Stale, p.b, release)
		p.holders(2)
		release.Token = t + 10
		p.expect(node.Granted, p.b, release)
		p.expect(node.Granted, p.a, shared(p.acquire("one", t+11)))
		p.expect(node.Stale, p.b, release)
		p.holders(2)
	}},
	{"a reader that asks again keeps its token or raises it", func(p *probe) {
		t := p.token(0)
		p.expect(node.Granted, p.a, shared(p.acquire("one", t+3)), shared(p.acquire("two", t+9)))
		p.expect(node.Granted, p.b, shared(p.acquire("one", t+3)), shared(p.acquire("one", t+5)))
		p.expect(node.Stale, p.b, shared(p.acquire("one", t+4)))
		p.expect(node.Granted, p.b, shared(p.release("two", t+9)))
		p.expect(node.Stale, p.a, shared(p.acquire("one", t+8)))
		p.expect(node.Granted, p.a, shared(p.acquire("one", t+5)))
		p.first(1, "one", reader, t+5)
	}},
	{"a repair of a reader needs room", func(p *probe) {
		t := p.token(0)
		p.expect(node.Granted, p.a, shared(p.acquire("other", t+5)))
		p.expect(node.Granted, p.b, shared(p.repair("missed", t+1)), shared(p.repair("missed", t+1)))
		p.holders(2)
		p.fence(t + 5)
		p.expect(node.Granted, p.a, forbidding(shared(p.release("missed", t+1)), p.long()))
		p.expect(node.Stale, p.a, shared(p.repair("missed", t+1)))
		p.expect(node.Granted, p.a, shared(p.release("other", t+5)), p.acquire("writer", t+9))
		p.expect(node.Held, p.b, shared(p.repair("missed", t+6)))
	}},
	{"a copy of a repair that comes after the release is stale", func(p *probe) {
		for _, share := range []func(node.Request) node.Request{shared, func(r node.Request) node.Request { return slotted(r, 3, 2) }} {
			p.name = uniqueName("repair-that-comes-twice")
			t := p.token(0)
			p.expect(node.Granted, p.a, share(p.acquire("holder", t)))
			one := share(p.repair("one", t+1))
			if one.Mode == node.Slotted {
				one.Slot = 0
			}
			p.expect(node.Granted, p.b, one)
			p.expect(node.Granted, p.a, forbidding(share(p.release("one", t+1)), p.long()))
			// Others come and go above it.
			p.expect(node.Granted, p.a, share(p.acquire("other", t+9)), share(p.release("other", t+9)))
			p.expect(node.Stale, p.b, one)
			// But the repair of one that was not released is due.
			one.Value, one.Token = "two", t+2
			p.expect(node.Granted, p.b, one)
		}
	}},
	// A writer was refused by others, and its undo raised the fence here.
	{"a share is repaired though a writer raised the fence", func(p *probe) {
		for _, share := range []func(node.Request) node.Request{shared, func(r node.Request) node.Request { return slotted(r, 3, 2) }} {
			p.name = uniqueName("repair-after-a-writer")
			t := p.token(0)
			p.takeAndRelease(p.a, "writer", t+5)
			req := share(p.repair("one", t))
			p.wantFence(p.expect(node.Granted, p.b, req), t+5)
			p.first(1, "one", req.Share, t)
			p.expect(node.Held, p.a, p.acquire("writer", t+9))
		}
	}},
	{"an extension makes a writer a reader", func(p *probe) {
		t := p.take("one")
		p.expect(node.Held, p.b, shared(p.acquire("two", t+1)))
		p.expect(node.Granted, p.a, shared(p.extend("one", t)))
		p.expect(node.Granted, p.b, shared(p.acquire("two", t+1)))
		p.first(2, "one", reader, t)
		p.expect(node.Granted, p.a, shared(p.release("one", t)))
		p.holders(1)
	}},
	{"an exclusive request does not find a reader of its value", func(p *probe) {
		t := p.take("one")
		p.expect(node.Granted, p.a, shared(p.extend("one", t)))
		p.expect(node.Held, p.b, p.extend("one", t), p.acquire("one", t), p.repair("one", t))
		p.expect(node.Held, p.b, p.release("one", t))
		p.holders(1)
		// But a shared request finds an exclusive holder of its value.
		p.expect(node.Granted, p.b, shared(p.release("one", t)))
		p.expect(node.Granted, p.a, p.acquire("one", t+1), shared(p.release("one", t+1)))
		p.free()
	}},
	{"a break removes all holders", func(p *probe) {
		t := p.token(0)
		p.expect(node.Granted, p.a, shared(p.acquire("one", t)), shared(p.acquire("two", t+1)))
		p.expect(node.Stale, p.b, p.breakUp(t+1))
		p.holders(2)
		p.expect(node.Granted, p.b, p.breakUp(t+2))
		p.free()
		p.expect(node.Stale, p.a, shared(p.acquire("one", t+2)))
		p.expect(node.Granted, p.a, shared(p.acquire("one", t+3)))
	}},
	{"a share that is not valid is an error without effect", func(p *probe) {
		for _, s := range []node.Share{
			{Mode: node.Slotted}, {Mode: node.Slotted, Slots: 65}, {Mode: node.Slotted, Slots: 2, Slot: 2},
			{Mode: node.Shared, Slots: 1}, {Slots: 1}, {Slot: 1}, {Mode: node.Slotted + 1},
		} {
			req := p.acquire("one", p.token(0))
			req.Share = s
			p.refused(p.context(), req)
		}
	}},
	{"a listing has all holders", func(p *probe) {
		t := p.token(0)
		p.expect(node.Granted, p.a, slotted(p.acquire("one", t), 3, 2), slotted(p.acquire("two", t+1), 3, 0))
		l := p.look(p.name)
		if l.Reply.Status != node.Held || l.Reply.Holders != 2 || len(l.Holders) != 2 {
			p.Fatalf("the listing is %q by %d holders and has %d, want two", l.Reply.Status, l.Reply.Holders, len(l.Holders))
		}
		for i, want := range []node.Holder{
			{Value: "one", Token: t, Share: node.Share{Mode: node.Slotted, Slots: 3, Slot: 2}},
			{Value: "two", Token: t + 1, Share: node.Share{Mode: node.Slotted, Slots: 3}},
		} {
			got := l.Holders[i]
			if left := got.Until.Sub(l.Reply.Now); left <= 0 || left > p.long()+p.tolerance {
				p.Errorf("holder %d expires in %v, want up to %v", i, left, p.long())
			}
			got.Until = want.Until
			if got != want {
				p.Errorf("holder %d is %q in %v with %d, want %q in %v with %d", i, got.Value, got.Share, got.Token, want.Value, want.Share, want.Token)
			}
		}
	}},
}

var reader = node.Share{Mode: node.Shared}

func shared(req node.Request) node.Request {
	req.Share = reader
	return req
}

func slotted(req node.Request, slots, slot uint8) node.Request {
	req.Share = node.Share{Mode: node.Slotted, Slots: slots, Slot: slot}
	return req
}

// waiting makes an acquire queue, by a waiter that arrived so long after the
// first.
func waiting(req node.Request, first node.Token, after time.Duration) node.Request {
	req.Wait, req.Ticket = true, int64(first)+after.Microseconds()
	return req
}

// expectSlot checks that a request is granted, and in which slot.
func (p *probe) expectSlot(slot uint8, n node.Node, req node.Request) node.Reply {
	p.Helper()
	reply := p.expect(node.Granted, n, req)
	if want := (node.Share{Mode: node.Slotted, Slots: req.Slots, Slot: slot}); reply.Share != want {
		p.Fatalf("acquire by %q: got %v, want %v", req.Value, reply.Share, want)
	}
	return reply
}

// onlyHolder checks that the name has this holder and no other.
func (p *probe) onlyHolder(value string) {
	p.Helper()
	if r := p.holders(1); r.Value != value {
		p.Fatalf("held by %q, want %s", r.Value, value)
	}
}

// holders checks how many holders the name has.
func (p *probe) holders(want int) node.Reply {
	p.Helper()
	if want == 0 {
		return p.free()
	}
	reply := p.expect(node.Held, p.b, p.inspect())
	if reply.Holders != want {
		p.Fatalf("the name has %d holders, want %d", reply.Holders, want)
	}
	return reply
}
