package nodetest

import "github.com/redlatch/redlatch/node"

// This file is about slots: which one is given, to whom, and when it moves.

// slotClaims are for nodes that know the mode Slotted.
var slotClaims = []claim{
	{"a slot excludes readers and writers, and they a slot", func(p *probe) {
		t := p.token(0)
		others := []func(value string, token node.Token) node.Request{
			p.acquire, func(value string, token node.Token) node.Request { return shared(p.acquire(value, token)) },
		}
		for _, other := range others {
			p.expect(node.Granted, p.a, other("other", t))
			p.expect(node.Held, p.b, slotted(p.acquire("slot", t+1), 2, 1))
			p.expect(node.Held, p.b, slotted(p.repair("slot", t+1), 2, 1))
			p.expect(node.Granted, p.a, shared(p.release("other", t)))
			p.expectSlot(1, p.b, slotted(p.acquire("slot", t+1), 2, 1))
			p.expect(node.Held, p.a, other("other", t+2))
			p.expect(node.Granted, p.b, slotted(p.release("slot", t+1), 2, 1))
			t += 2
		}
	}},
	{"slots are given lowest first", func(p *probe) {
		t := p.token(0)
		p.expectSlot(0, p.a, slotted(p.acquire("one", t), 3, 0))
		r := p.expectSlot(1, p.b, slotted(p.acquire("two", t+1), 3, 0))
		if r.Free != 1<<2 {
			p.Fatalf("the free slots are %b, want 100", r.Free)
		}
		p.expectSlot(2, p.a, slotted(p.acquire("three", t+2), 3, 0))
		r = p.expect(node.Held, p.b, slotted(p.acquire("four", t+3), 3, 0))
		if r.Free != 0 || r.Holders != 3 || r.Value != "one" || r.Share != (node.Share{Mode: node.Slotted, Slots: 3}) {
			p.Fatalf("free %b, %d holders, first %q in %v", r.Free, r.Holders, r.Value, r.Share)
		}
		p.expect(node.Granted, p.b, slotted(p.release("two", t+1), 3, 1))
		p.expectSlot(1, p.a, slotted(p.acquire("four", t+4), 3, 0))
	}},
	{"a slot needs a token above every other's", func(p *probe) {
		t := p.token(0)
		p.expectSlot(0, p.a, slotted(p.acquire("one", t+5), 3, 0))
		p.expect(node.Stale, p.b, slotted(p.acquire("two", t+4), 3, 1), slotted(p.acquire("two", t+5), 3, 1))
		p.expectSlot(1, p.b, slotted(p.acquire("two", t+6), 3, 1))
		p.fence(t + 6)
		p.expect(node.Granted, p.a, slotted(p.release("one", t+7), 3, 0))
		p.expect(node.Stale, p.a, slotted(p.acquire("one", t+7), 3, 0))
		p.expectSlot(0, p.a, slotted(p.acquire("one", t+8), 3, 0))
	}},
	{"no slot has two holders", func(p *probe) {
		t := p.token(0)
		p.expectSlot(1, p.a, slotted(p.acquire("one", t), 2, 1))
		p.expectSlot(0, p.b, slotted(p.acquire("two", t+1), 2, 1))
		p.expect(node.Held, p.b, slotted(p.acquire("three", t+2), 2, 1), shared(p.acquire("reader", t+2)))
		p.expect(node.Held, p.b, p.acquire("writer", t+2))
		p.holders(2)
	}},
	{"a slot that is asked for is given if it is free", func(p *probe) {
		t := p.token(0)
		p.expectSlot(63, p.a, slotted(p.acquire("last", t), 64, 63))
		p.expectSlot(5, p.b, slotted(p.acquire("five", t+1), 64, 5))
		p.expectSlot(0, p.b, slotted(p.acquire("another", t+2), 64, 5))
		p.expectSlot(1, p.a, slotted(p.acquire("one more", t+3), 64, 63))
	}},
	{"a holder moves to a free slot and to no other", func(p *probe) {
		t := p.token(0)
		p.expectSlot(0, p.a, slotted(p.acquire("one", t), 3, 0))
		p.expectSlot(1, p.a, slotted(p.acquire("two", t+1), 3, 0))
		for i, wish := range []uint8{2, 1} {
			token := t + 2 + node.Token(i)
			p.expectSlot(2, p.b, slotted(p.acquire("one", token), 3, wish))
			// Of several holders the one with the lowest token is named.
			p.first(2, "two", node.Share{Mode: node.Slotted, Slots: 3, Slot: 1}, t+1)
			p.fence(token)
		}
		p.expect(node.Granted, p.a, slotted(p.release("two", t+1), 3, 1))
		p.first(1, "one", node.Share{Mode: node.Slotted, Slots: 3, Slot: 2}, t+3)
	}},
	{"an earlier proposal does not move a slot back", func(p *probe) {
		t := p.token(0)
		p.expectSlot(1, p.a, slotted(p.acquire("one", t+2), 2, 1))
		p.expect(node.Stale, p.b, slotted(p.acquire("one", t+1), 2, 0))
		p.expectSlot(0, p.a, slotted(p.acquire("two", t+3), 2, 0))
		p.expect(node.Stale, p.b, slotted(p.acquire("one", t+3), 2, 1))
		p.expectSlot(1, p.b, slotted(p.acquire("one", t+2), 2, 1))
	}},
	{"a copy of a request does not move a slot", func(p *probe) {
		for _, t := range []node.Token{p.token(0), 0} {
			next := func(n node.Token) node.Token { return min(t, 1) * (t + n) }
			p.expectSlot(0, p.a, slotted(p.acquire("other", next(0)), 2, 0))
			p.expectSlot(1, p.a, slotted(p.acquire("one", next(1)), 2, 0))
			p.expect(node.Granted, p.b, slotted(p.release("other", next(0)), 2, 0))
			p.expectSlot(1, p.b, slotted(p.acquire("one", next(1)), 2, 0))
			p.expectSlot(0, p.a, slotted(p.acquire("next", next(2)), 2, 1))
			p.expect(node.Granted, p.b, slotted(p.release("one", next(1)), 2, 1))
			p.expect(node.Granted, p.b, slotted(p.release("next", next(2)), 2, 0))
		}
	}},
	{"a slot is free after its holder has expired", func(p *probe) {
		t := p.token(0)
		p.expectSlot(0, p.a, slotted(withTTL(p.acquire("short", t), p.h.Unit), 2, 0))
		p.expectSlot(1, p.a, slotted(p.acquire("long", t+1), 2, 0))
		p.left(p.expect(node.Held, p.a, slotted(p.acquire("next", t+2), 2, 0)), 0, p.h.Unit)
		p.outlast(p.h.Unit)
		p.expectSlot(0, p.b, slotted(p.acquire("next", t+3), 2, 0))
		p.holders(2)
	}},
	{"another number of slots conflicts", func(p *probe) {
		t := p.token(0)
		p.expectSlot(0, p.a, slotted(p.acquire("one", t), 3, 0))
		r := p.expect(node.Held, p.b, slotted(p.acquire("two", t+1), 4, 3))
		if r.Share.Slots != 3 || r.Free != 0 {
			p.Fatalf("held by %v, free %b; want 3 slots, none free", r.Share, r.Free)
		}
		p.expect(node.Granted, p.a, slotted(p.release("one", t), 3, 0))
		p.expectSlot(3, p.b, slotted(p.acquire("two", t+2), 4, 3))
	}},
	{"an extension is for one slot", func(p *probe) {
		t := p.token(0)
		p.expectSlot(0, p.a, slotted(withTTL(p.acquire("one", t), p.h.Unit), 2, 0))
		p.expect(node.Absent, p.b, slotted(p.extend("one", t), 2, 1))
		p.outlast(p.h.Unit)
		p.free()
		p.expectSlot(1, p.a, slotted(p.acquire("one", t+1), 2, 1))
		p.expect(node.Granted, p.b, slotted(p.extend("one", t+1), 2, 1))
		p.expect(node.Held, p.b, slotted(p.extend("two", t), 2, 1))
		p.expect(node.Absent, p.b, slotted(p.extend("two", t), 2, 0))
		// A release frees whatever slot the value has.
		p.expect(node.Granted, p.b, slotted(p.release("one", t+1), 2, 0))
		p.free()
	}},
	{"a repair moves a value to its slot", func(p *probe) {
		t := p.token(0)
		p.expectSlot(0, p.a, slotted(p.acquire("one", t), 3, 0))
		p.expect(node.Granted, p.b, slotted(p.repair("one", t), 3, 2))
		r := p.expectSlot(0, p.a, slotted(p.acquire("two", t+1), 3, 2))
		if r.Free != 1<<1 {
			p.Fatalf("the free slots are %b, want 10", r.Free)
		}
		p.expect(node.Held, p.b, slotted(p.repair("two", t+1), 3, 2))
		p.first(2, "one", node.Share{Mode: node.Slotted, Slots: 3, Slot: 2}, t)
		p.expect(node.Held, p.b, slotted(p.repair("three", t+2), 3, 2))
		p.expect(node.Granted, p.b, slotted(p.repair("three", t+2), 3, 1), slotted(p.release("one", t), 3, 2))
		p.expect(node.Granted, p.b, slotted(p.repair("two", t+1), 3, 2))
		p.expectSlot(0, p.a, slotted(p.acquire("four", t+3), 3, 0))
	}},
}
