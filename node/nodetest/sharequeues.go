package nodetest

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is about readers and slots in the queue, and who is notified.

// shareQueueClaims are about readers and slots in a queue.
var shareQueueClaims = []claim{
	{"a reader behind a waiting writer waits", func(p *probe) {
		first := p.token(0)
		p.expect(node.Granted, p.a, shared(p.acquire("reader", 0)))
		p.expectRank(node.Held, 1, p.a, waiting(p.acquire("writer", 0), first, time.Millisecond))
		p.expectRank(node.Held, 2, p.b, waiting(shared(p.acquire("late", 0)), first, 2*time.Millisecond))
		p.expect(node.Held, p.b, shared(p.acquire("passer-by", 0)))
		if !p.h.Arrival { // one that came before the writer is let in
			p.expect(node.Granted, p.b, waiting(shared(p.acquire("early", 0)), first, 0))
			p.holders(2)
		}
	}},
	{"readers at the head are granted together", func(p *probe) {
		first := p.line(p.a)
		for i, value := range []string{"one", "two", "three"} {
			p.expectRank(node.Held, i+1, p.a, waiting(shared(p.acquire(value, 0)), first, time.Duration(i)*time.Millisecond))
		}
		p.expectRank(node.Held, 4, p.b, waiting(p.acquire("writer", 0), first, 4*time.Millisecond))
		p.expectRank(node.Held, 5, p.b, waiting(shared(p.acquire("four", 0)), first, 5*time.Millisecond))
		p.expect(node.Granted, p.a, p.release("holder", 0))
		p.expectRank(node.Reserved, 5, p.b, waiting(shared(p.acquire("four", 0)), first, 5*time.Millisecond))
		// In any order.
		p.expect(node.Granted, p.b, waiting(shared(p.acquire("three", 0)), first, 2*time.Millisecond))
		p.expect(node.Granted, p.b, waiting(shared(p.acquire("one", 0)), first, 0))
		p.expect(node.Granted, p.a, waiting(shared(p.acquire("two", 0)), first, time.Millisecond))
		p.expectRank(node.Held, 1, p.a, waiting(p.acquire("writer", 0), first, 4*time.Millisecond))
		p.expectRank(node.Held, 2, p.a, waiting(shared(p.acquire("four", 0)), first, 5*time.Millisecond))
		p.holders(3)
	}},
	{"as many waiters are granted as there are slots", func(p *probe) {
		first := p.line(p.a)
		for i, value := range []string{"one", "two", "three", "four"} {
			p.expectRank(node.Held, i+1, p.a, waiting(slotted(p.acquire(value, 0), 3, 0), first, time.Duration(i)*time.Millisecond))
		}
		p.expect(node.Granted, p.a, p.release("holder", 0))
		reserved := func(rank int, free node.SlotSet) {
			p.Helper()
			r := p.expect(node.Reserved, p.b, waiting(slotted(p.acquire("four", 0), 3, 0), first, 3*time.Millisecond))
			if r.Rank != rank || r.Free != free {
				p.Fatalf("the rank is %d and the free slots %b, want %d and %b", r.Rank, r.Free, rank, free)
			}
		}
		reserved(4, 0b111)
		p.expectSlot(0, p.b, waiting(slotted(p.acquire("three", 0), 3, 0), first, 2*time.Millisecond))
		reserved(3, 0b110)
		p.expectSlot(1, p.b, waiting(slotted(p.acquire("one", 0), 3, 0), first, 0))
		p.expectSlot(2, p.b, waiting(slotted(p.acquire("two", 0), 3, 0), first, time.Millisecond))
		p.expectRank(node.Held, 1, p.b, waiting(slotted(p.acquire("four", 0), 3, 0), first, 3*time.Millisecond))
	}},
}

// shareTicketClaims are for nodes that go by tickets.
var shareTicketClaims = []claim{
	{"a waiter of another kind has its place", func(p *probe) {
		first := p.line(p.a)
		p.expectRank(node.Held, 1, p.a, waiting(slotted(p.acquire("slot", 0), 2, 0), first, 3*time.Millisecond))
		p.expectRank(node.Held, 1, p.b, waiting(shared(p.acquire("reader", 0)), first, 2*time.Millisecond))
		p.expectRank(node.Held, 1, p.a, waiting(p.acquire("writer", 0), first, time.Millisecond))
		p.expectRank(node.Held, 3, p.b, waiting(slotted(p.acquire("slot", 0), 2, 0), first, 3*time.Millisecond))
		l := p.look(p.name)
		if len(l.Waiters) != 3 {
			p.Fatalf("%d waiters are listed, want 3", len(l.Waiters))
		}
		for i, want := range []node.Share{{}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 2}} {
			if l.Waiters[i].Share != want {
				p.Errorf("waiter %d waits for %v, want %v", i, l.Waiters[i].Share, want)
			}
		}
		p.expect(node.Held, p.a, shared(p.release("reader", 0)))
		p.expectRank(node.Held, 2, p.b, waiting(slotted(p.acquire("slot", 0), 2, 0), first, 3*time.Millisecond))
		// The same ticket: the kind decides, then the value. An exclusive one begins
		// with a hexadecimal digit, like those of clients: a node may sort by a text
		// of kind and value.
		p.expectRank(node.Held, 2, p.a, waiting(shared(p.acquire("b", 0)), first, 3*time.Millisecond))
		p.expectRank(node.Held, 2, p.b, waiting(p.acquire("ff", 0), first, 3*time.Millisecond))
		p.expectRank(node.Held, 3, p.a, waiting(shared(p.acquire("a", 0)), first, 3*time.Millisecond))
		p.expectRank(node.Held, 5, p.b, waiting(slotted(p.acquire("slot", 0), 2, 0), first, 3*time.Millisecond))
	}},
}

// shareWakeClaims are about who of them is notified.
var shareWakeClaims = []claim{
	{"a reader is notified when the writer before it leaves", func(p *probe) {
		e := p.listen(p.a)
		first := p.token(0)
		p.expect(node.Granted, p.a, shared(p.acquire("holder", 0)))
		p.expectRank(node.Held, 1, p.a, waiting(p.acquire("writer", 0), first, time.Millisecond))
		p.expectRank(node.Held, 2, p.a, waiting(shared(p.acquire("reader", 0)), first, 2*time.Millisecond))
		e.expect()
		p.expect(node.Held, p.b, p.release("passer-by", 0))
		e.expect() // it fits beside the holder, and not beside the writer
		p.expect(node.Held, p.a, p.release("writer", 0))
		e.expect(turn("reader"))
		p.expect(node.Granted, p.a, waiting(shared(p.acquire("reader", 0)), first, 2*time.Millisecond))
		p.holders(2)
	}},
	{"a downgrade notifies readers", func(p *probe) {
		e := p.listen(p.a)
		first := p.line(p.a)
		p.expectRank(node.Held, 1, p.a, waiting(shared(p.acquire("reader", 0)), first, time.Millisecond))
		p.expectRank(node.Held, 2, p.a, waiting(p.acquire("writer", 0), first, 2*time.Millisecond))
		e.expect()
		p.expect(node.Granted, p.b, shared(p.extend("holder", 0)))
		e.expect(turn("reader"))
		p.expect(node.Granted, p.b, shared(p.extend("holder", 0)))
		e.expect()
	}},
	{"a yield of a reader is for writers", func(p *probe) {
		e := p.listen(p.a)
		first := p.token(0)
		yield := func(token node.Token, after time.Duration) node.Request {
			return waiting(shared(p.request(node.OpYield, "holder", token)), first, after)
		}
		t := p.take("holder")
		p.expectRank(node.Held, 1, p.a, waiting(shared(p.acquire("reader", 0)), first, 0))
		p.expectRank(node.Held, 2, p.a, waiting(p.acquire("writer", 0), first, 2*time.Millisecond))
		p.expect(node.Granted, p.a, shared(p.extend("holder", t)))
		e.expect(turn("reader"))
		// The reader came before, and fits beside the holder.
		p.expect(node.Granted, p.a, yield(t+2, time.Millisecond))
		p.fence(t + 2)
		p.expect(node.Stale, p.b, yield(t+2, time.Millisecond))
		// The token of a reader does not bind the next.
		reader := waiting(shared(p.acquire("reader", t+1)), first, 0)
		p.expect(node.Granted, p.a, reader)
		// The writer came later.
		p.expect(node.Granted, p.a, yield(t+3, time.Millisecond))
		p.holders(2)
		e.expect()
		// The writer came before. It has to wait for the other reader yet.
		p.expectRank(node.Reserved, 2, p.a, yield(t+4, 3*time.Millisecond))
		p.onlyHolder("reader")
		e.expect()
		p.expect(node.Granted, p.b, shared(p.release("reader", 0)))
		e.expect(turn("writer"))
	}},
	{"a yield that a writer keeps binds readers", func(p *probe) {
		t := p.token(0)
		yield := waiting(p.request(node.OpYield, "writer", t+5), t, 0)
		p.expect(node.Granted, p.a, p.acquire("writer", t))
		p.expect(node.Granted, p.b, yield)
		p.expect(node.Granted, p.a, p.release("writer", 0))
		p.expect(node.Stale, p.b, shared(p.acquire("reader", t+5)))
		p.expect(node.Granted, p.b, shared(p.acquire("reader", t+6)))
	}},
}

// listShareWakeClaims are for nodes that notify two waiters of their turn.
var listShareWakeClaims = []claim{
	{"two of a run of readers are notified", func(p *probe) {
		e := p.listen(p.a)
		first := p.line(p.a)
		wait := func(i int) node.Request {
			return waiting(shared(p.acquire([]string{"one", "two", "three", "four"}[i], 0)), first, time.Duration(i)*time.Millisecond)
		}
		for i := range 4 {
			p.expectRank(node.Held, i+1, p.a, wait(i))
		}
		e.expect()
		p.expect(node.Granted, p.a, p.release("holder", 0))
		e.expect(turn("one"), turn("two"))
		p.expect(node.Granted, p.a, wait(1))
		e.expect(turn("three"))
		p.expect(node.Granted, p.a, wait(0))
		e.expect(turn("four"))
		p.expect(node.Granted, p.a, wait(2), wait(3))
		e.expect()
		p.holders(4)
	}},
}
