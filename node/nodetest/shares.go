package nodetest

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// shareClaims are for nodes that know the modes Shared and Slotted.
func shareClaims(h Harness) []claim {
	all := []claim{
		{"readers hold a name together", readersHoldTogether},
		{"a reader and a writer exclude each other", readerAndWriterExclude},
		{"a slot excludes readers and writers, and they a slot", slotExcludesOthers},
		{"each reader has its own expiry", readersExpireAlone},
		{"a reader extends and releases its own share alone", readersExtendAlone},
		{"a reader needs a token above every writer's", readerIsAboveWriters},
		{"readers do not refuse each other's tokens", readersDoNotRefuseTokens},
		{"a writer needs a token above every reader's", writerIsAboveReaders},
		{"a release of a reader makes its acquire stale", releasedReaderIsStale},
		{"a release of a reader that is to be carried out once is", releaseOfAReaderOnce},
		{"a reader that asks again keeps its token or raises it", readerAsksAgain},
		{"slots are given lowest first", slotsLowestFirst},
		{"a slot needs a token above every other's", slotIsAboveAll},
		{"no slot has two holders", noSlotTwice},
		{"a slot that is asked for is given if it is free", slotWished},
		{"a holder moves to a free slot and to no other", slotMoves},
		{"an earlier proposal does not move a slot back", slotLateProposal},
		{"a copy of a request does not move a slot", slotCopy},
		{"a slot is free after its holder has expired", slotExpires},
		{"another number of slots conflicts", otherSlots},
		{"an extension is for one slot", extensionIsForOneSlot},
		{"a repair of a reader needs room", repairOfAReader},
		{"a repair moves a value to its slot", repairOfASlot},
		{"a copy of a repair that comes after the release is stale", repairThatComesTwice},
		{"an extension makes a writer a reader", downgrade},
		{"an exclusive request does not find a reader of its value", lateExclusive},
		{"a break removes all holders", breakRemovesAll},
		{"a share that is not valid is an error without effect", badShares},
	}
	if h.Lists {
		all = append(all, claim{"a listing has all holders", listingHasAllHolders})
	}
	if h.Queues {
		all = append(all,
			claim{"a reader behind a waiting writer waits", readerBehindWriter},
			claim{"readers at the head are granted together", readersAtTheHead},
			claim{"as many waiters are granted as there are slots", slotsForWaiters},
			claim{"a waiter of another kind has its place", kindsHaveOneQueue},
		)
	}
	if h.Queues && h.Wakes {
		all = append(all,
			claim{"two of a run of readers are notified", twoReadersAreNotified},
			claim{"a reader is notified when the writer before it leaves", readerBehindLeaver},
			claim{"a downgrade notifies readers", downgradeNotifies},
			claim{"an offer of a reader is for writers", offerOfAReader},
			claim{"an offer that a writer keeps binds readers", offerOfAWriter},
		)
	}
	return all
}

// noShareClaims are for nodes that know exclusive locks alone.
func noShareClaims() []claim {
	return []claim{{"a node that does not know a mode refuses it", unknownShares}}
}

func unknownShares(p *probe) {
	for _, op := range []node.Op{node.OpAcquire, node.OpExtend, node.OpRelease, node.OpRepair} {
		req := p.request(op, "one", p.token(0))
		p.refused(p.context(), shared(req))
		p.refused(p.context(), slotted(req, 2, 0))
	}
}

func shared(req node.Request) node.Request {
	req.Share = node.Share{Mode: node.Shared}
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

func readersHoldTogether(p *probe) {
	t := p.token(0)
	r := p.expect(node.Granted, p.a, shared(p.acquire("one", t)))
	if r.Share != (node.Share{Mode: node.Shared}) {
		p.Fatalf("the share is %v", r.Share)
	}
	p.expect(node.Granted, p.b, shared(p.acquire("two", t+1)))
	p.expect(node.Granted, p.a, shared(p.acquire("three", t+2)))
	r = p.holders(3)
	if r.Value != "one" || r.Share.Mode != node.Shared || r.HolderToken != t {
		p.Fatalf("held by %q with %d, %v; want one with %d", r.Value, r.HolderToken, r.Share, t)
	}
	p.fence(t + 2)
}

func readerAndWriterExclude(p *probe) {
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
}

func slotExcludesOthers(p *probe) {
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
}

func readersExpireAlone(p *probe) {
	p.expect(node.Granted, p.a, shared(withTTL(p.acquire("short", 0), p.h.Unit)))
	p.expect(node.Granted, p.a, shared(p.acquire("long", 0)))
	p.expect(node.Granted, p.a, shared(withTTL(p.acquire("brief", 0), p.h.Unit)))
	for _, req := range []node.Request{p.acquire("writer", 0), slotted(p.acquire("slot", 0), 2, 0)} {
		if r := p.expect(node.Held, p.b, req); r.Left <= p.h.Unit {
			p.Fatalf("all readers will have expired in %v, want up to %v", r.Left, p.long())
		}
	}
	p.outlast(p.h.Unit)
	p.expect(node.Granted, p.a, shared(p.extend("long", 0)))
	if r := p.holders(1); r.Value != "long" {
		p.Fatalf("held by %q, want long", r.Value)
	}
	p.expect(node.Absent, p.b, shared(p.extend("short", 0))) // there is room for a repair
	p.expect(node.Held, p.b, p.acquire("writer", 0))

	p.expect(node.Granted, p.a, shared(p.acquire("other", 0)))
	p.expect(node.Granted, p.b, shared(withTTL(p.extend("long", 0), p.h.Unit)))
	p.outlast(p.h.Unit)
	if r := p.holders(1); r.Value != "other" {
		p.Fatalf("held by %q, want other", r.Value)
	}
	p.expect(node.Granted, p.b, shared(withTTL(p.extend("other", 0), p.h.Unit)))
	p.outlast(p.h.Unit)
	p.expect(node.Granted, p.b, p.acquire("writer", 0))
}

func readersExtendAlone(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, shared(p.acquire("one", t)))
	p.expect(node.Granted, p.a, shared(p.acquire("two", t+1)))
	p.expect(node.Absent, p.a, shared(p.extend("three", t)))
	p.expect(node.Held, p.a, shared(p.release("three", 0)))
	p.holders(2)
	p.expect(node.Granted, p.b, shared(p.release("one", t)))
	p.holders(1)
	p.expect(node.Granted, p.b, shared(p.extend("two", t+1)))
	p.expect(node.Held, p.b, shared(p.release("one", t)))
	p.expect(node.Granted, p.b, shared(p.release("two", t+1)))
	p.free()
}

func readerIsAboveWriters(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("writer", t+5))
	p.expect(node.Granted, p.a, p.release("writer", t+5))
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
}

func readersDoNotRefuseTokens(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, shared(p.acquire("late", t+9)))
	p.expect(node.Granted, p.b, shared(p.acquire("early", t+1)))
	p.fence(t + 9)
	p.expect(node.Behind, p.b, shared(withWindow(p.acquire("old", t-node.Token(outside.Microseconds())), window)))
}

func writerIsAboveReaders(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, shared(withTTL(p.acquire("reader", t+9), p.h.Unit)))
	p.outlast(p.h.Unit)
	p.expect(node.Stale, p.a, p.acquire("writer", t+9))
	p.expect(node.Stale, p.a, slotted(p.acquire("slot", t+9), 2, 0))
	p.expect(node.Granted, p.b, p.acquire("writer", t+10))
}

func releasedReaderIsStale(p *probe) {
	t := p.token(0)
	p.expect(node.Absent, p.a, shared(p.release("reader", t+3)))
	p.expect(node.Stale, p.a, shared(p.acquire("reader", t+3)))
	p.expect(node.Granted, p.a, shared(p.acquire("other", t+4)))
	p.expect(node.Held, p.b, shared(p.release("reader", t+7)))
	p.expect(node.Stale, p.b, shared(p.acquire("reader", t+7)))
	p.holders(1)
}

// The release of a reader needs a token above the fence, which another reader
// may have raised.
func releaseOfAReaderOnce(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, shared(p.acquire("one", t)))
	p.expect(node.Granted, p.a, shared(p.acquire("two", t+9)))
	release := shared(p.release("one", t+5))
	release.Once = true
	p.expect(node.Stale, p.b, release)
	p.holders(2)
	release.Token = t + 10
	p.expect(node.Granted, p.b, release)
	p.expect(node.Granted, p.a, shared(p.acquire("one", t+11)))
	p.expect(node.Stale, p.b, release)
	p.holders(2)
}

func readerAsksAgain(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, shared(p.acquire("one", t+3)))
	p.expect(node.Granted, p.a, shared(p.acquire("two", t+9)))
	p.expect(node.Granted, p.b, shared(p.acquire("one", t+3)))
	p.expect(node.Granted, p.b, shared(p.acquire("one", t+5)))
	p.expect(node.Stale, p.b, shared(p.acquire("one", t+4)))
	p.expect(node.Granted, p.b, shared(p.release("two", t+9)))
	p.expect(node.Stale, p.a, shared(p.acquire("one", t+8)))
	p.expect(node.Granted, p.a, shared(p.acquire("one", t+5)))
	if r := p.holders(1); r.HolderToken != t+5 {
		p.Fatalf("the holder's token is %d, want %d", r.HolderToken, t+5)
	}
}

func slotsLowestFirst(p *probe) {
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
}

func slotIsAboveAll(p *probe) {
	t := p.token(0)
	p.expectSlot(0, p.a, slotted(p.acquire("one", t+5), 3, 0))
	p.expect(node.Stale, p.b, slotted(p.acquire("two", t+4), 3, 1))
	p.expect(node.Stale, p.b, slotted(p.acquire("two", t+5), 3, 1))
	p.expectSlot(1, p.b, slotted(p.acquire("two", t+6), 3, 1))
	p.fence(t + 6)
	p.expect(node.Granted, p.a, slotted(p.release("one", t+7), 3, 0))
	p.expect(node.Stale, p.a, slotted(p.acquire("one", t+7), 3, 0))
	p.expectSlot(0, p.a, slotted(p.acquire("one", t+8), 3, 0))
}

func noSlotTwice(p *probe) {
	t := p.token(0)
	p.expectSlot(1, p.a, slotted(p.acquire("one", t), 2, 1))
	p.expectSlot(0, p.b, slotted(p.acquire("two", t+1), 2, 1))
	p.expect(node.Held, p.b, slotted(p.acquire("three", t+2), 2, 1))
	p.expect(node.Held, p.b, shared(p.acquire("reader", t+2)))
	p.expect(node.Held, p.b, p.acquire("writer", t+2))
	p.holders(2)
}

func slotWished(p *probe) {
	t := p.token(0)
	p.expectSlot(63, p.a, slotted(p.acquire("last", t), 64, 63))
	p.expectSlot(5, p.b, slotted(p.acquire("five", t+1), 64, 5))
	p.expectSlot(0, p.b, slotted(p.acquire("another", t+2), 64, 5))
	p.expectSlot(1, p.a, slotted(p.acquire("one more", t+3), 64, 63))
}

func slotMoves(p *probe) {
	t := p.token(0)
	p.expectSlot(0, p.a, slotted(p.acquire("one", t), 3, 0))
	p.expectSlot(1, p.a, slotted(p.acquire("two", t+1), 3, 0))
	for i, wish := range []uint8{2, 1} {
		token := t + 2 + node.Token(i)
		p.expectSlot(2, p.b, slotted(p.acquire("one", token), 3, wish))
		r := p.holders(2)
		if r.Value != "one" || r.Share.Slot != 2 || r.HolderToken != token {
			p.Fatalf("the first is %q in %v with %d, want one in slot 2 with %d", r.Value, r.Share, r.HolderToken, token)
		}
		p.fence(token)
	}
}

func slotLateProposal(p *probe) {
	t := p.token(0)
	p.expectSlot(1, p.a, slotted(p.acquire("one", t+2), 2, 1))
	p.expect(node.Stale, p.b, slotted(p.acquire("one", t+1), 2, 0))
	p.expectSlot(0, p.a, slotted(p.acquire("two", t+3), 2, 0))
	p.expect(node.Stale, p.b, slotted(p.acquire("one", t+3), 2, 1))
	p.expectSlot(1, p.b, slotted(p.acquire("one", t+2), 2, 1))
}

func slotCopy(p *probe) {
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
}

func slotExpires(p *probe) {
	t := p.token(0)
	p.expectSlot(0, p.a, slotted(withTTL(p.acquire("short", t), p.h.Unit), 2, 0))
	p.expectSlot(1, p.a, slotted(p.acquire("long", t+1), 2, 0))
	if r := p.expect(node.Held, p.a, slotted(p.acquire("next", t+2), 2, 0)); r.Left <= 0 || r.Left > p.h.Unit {
		p.Fatalf("a slot is free in %v, want at most %v", r.Left, p.h.Unit)
	}
	p.outlast(p.h.Unit)
	p.expectSlot(0, p.b, slotted(p.acquire("next", t+3), 2, 0))
	p.holders(2)
}

func otherSlots(p *probe) {
	t := p.token(0)
	p.expectSlot(0, p.a, slotted(p.acquire("one", t), 3, 0))
	r := p.expect(node.Held, p.b, slotted(p.acquire("two", t+1), 4, 3))
	if r.Share.Slots != 3 || r.Free != 0 {
		p.Fatalf("held by %v, free %b; want 3 slots, none free", r.Share, r.Free)
	}
	p.expect(node.Granted, p.a, slotted(p.release("one", t), 3, 0))
	p.expectSlot(3, p.b, slotted(p.acquire("two", t+2), 4, 3))
}

func extensionIsForOneSlot(p *probe) {
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
}

func repairOfAReader(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, shared(p.acquire("other", t+5)))
	p.expect(node.Granted, p.b, shared(p.repair("missed", t+1)))
	p.expect(node.Granted, p.b, shared(p.repair("missed", t+1)))
	p.holders(2)
	p.fence(t + 5)
	p.expect(node.Granted, p.a, shared(p.release("missed", t+1)))
	p.expect(node.Stale, p.a, shared(p.repair("missed", t+1)))
	p.expect(node.Granted, p.a, shared(p.release("other", t+5)))
	p.expect(node.Granted, p.a, p.acquire("writer", t+9))
	p.expect(node.Held, p.b, shared(p.repair("missed", t+6)))
}

func repairThatComesTwice(p *probe) {
	for _, share := range []func(node.Request) node.Request{shared, func(r node.Request) node.Request { return slotted(r, 3, 2) }} {
		p.name = uniqueName("repair-that-comes-twice")
		t := p.token(0)
		seen := func(req node.Request, at time.Time) node.Request {
			req.Seen = at
			return req
		}
		p.expect(node.Granted, p.a, share(p.acquire("holder", t)))
		first := p.do(p.a, p.inspect()).Now
		p.pass(p.h.Unit / 10)
		one := share(p.repair("one", t+1))
		if one.Mode == node.Slotted {
			one.Slot = 0
		}
		p.expect(node.Granted, p.b, seen(one, first))
		p.expect(node.Granted, p.a, share(p.release("one", t+1)))
		// Others come and go above it.
		p.expect(node.Granted, p.a, share(p.acquire("other", t+9)))
		p.expect(node.Granted, p.a, share(p.release("other", t+9)))
		p.expect(node.Stale, p.b, seen(one, first))
		// But a repair that is due, of one that was not released since, is not.
		p.pass(p.h.Unit / 10)
		one.Value, one.Token = "two", t+2
		p.expect(node.Granted, p.b, seen(one, p.do(p.a, p.inspect()).Now))
	}
}

func repairOfASlot(p *probe) {
	t := p.token(0)
	p.expectSlot(0, p.a, slotted(p.acquire("one", t), 3, 0))
	p.expect(node.Granted, p.b, slotted(p.repair("one", t), 3, 2))
	r := p.expectSlot(0, p.a, slotted(p.acquire("two", t+1), 3, 2))
	if r.Free != 1<<1 {
		p.Fatalf("the free slots are %b, want 10", r.Free)
	}
	p.expect(node.Held, p.b, slotted(p.repair("two", t+1), 3, 2))
	if r := p.holders(2); r.Value != "one" || r.Share.Slot != 2 {
		p.Fatalf("held by %q in %v, want one in slot 2", r.Value, r.Share)
	}
	p.expect(node.Held, p.b, slotted(p.repair("three", t+2), 3, 2))
	p.expect(node.Granted, p.b, slotted(p.repair("three", t+2), 3, 1))
	p.expect(node.Granted, p.b, slotted(p.release("one", t), 3, 2))
	p.expect(node.Granted, p.b, slotted(p.repair("two", t+1), 3, 2))
	p.expectSlot(0, p.a, slotted(p.acquire("four", t+3), 3, 0))
}

func downgrade(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("one", t))
	p.expect(node.Held, p.b, shared(p.acquire("two", t+1)))
	p.expect(node.Granted, p.a, shared(p.extend("one", t)))
	p.expect(node.Granted, p.b, shared(p.acquire("two", t+1)))
	r := p.holders(2)
	if r.Value != "one" || r.Share.Mode != node.Shared || r.HolderToken != t {
		p.Fatalf("the first is %q, %v, with %d", r.Value, r.Share, r.HolderToken)
	}
	p.expect(node.Granted, p.a, shared(p.release("one", t)))
	p.holders(1)
}

func lateExclusive(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("one", t))
	p.expect(node.Granted, p.a, shared(p.extend("one", t)))
	p.expect(node.Held, p.b, p.extend("one", t))
	p.expect(node.Held, p.b, p.acquire("one", t))
	p.expect(node.Held, p.b, p.repair("one", t))
	p.expect(node.Held, p.b, p.release("one", t))
	p.holders(1)
	// But a shared request finds an exclusive holder of its value.
	p.expect(node.Granted, p.b, shared(p.release("one", t)))
	p.expect(node.Granted, p.a, p.acquire("one", t+1))
	p.expect(node.Granted, p.a, shared(p.release("one", t+1)))
	p.free()
}

func breakRemovesAll(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, shared(p.acquire("one", t)))
	p.expect(node.Granted, p.a, shared(p.acquire("two", t+1)))
	p.expect(node.Stale, p.b, p.breakUp(t+1))
	p.holders(2)
	p.expect(node.Granted, p.b, p.breakUp(t+2))
	p.free()
	p.expect(node.Stale, p.a, shared(p.acquire("one", t+2)))
	p.expect(node.Granted, p.a, shared(p.acquire("one", t+3)))
}

func badShares(p *probe) {
	for _, s := range []node.Share{
		{Mode: node.Slotted}, {Mode: node.Slotted, Slots: 65}, {Mode: node.Slotted, Slots: 2, Slot: 2},
		{Mode: node.Shared, Slots: 1}, {Slots: 1}, {Slot: 1}, {Mode: node.Slotted + 1},
	} {
		req := p.acquire("one", p.token(0))
		req.Share = s
		p.refused(p.context(), req)
	}
}

func listingHasAllHolders(p *probe) {
	t := p.token(0)
	p.expect(node.Granted, p.a, slotted(p.acquire("one", t), 3, 2))
	p.expect(node.Granted, p.a, slotted(p.acquire("two", t+1), 3, 0))
	l := p.look(p.name)
	if l.Reply.Status != node.Held || l.Reply.Holders != 2 || len(l.Holders) != 2 {
		p.Fatalf("the listing is %q by %d holders and has %d, want two", l.Reply.Status, l.Reply.Holders, len(l.Holders))
	}
	for i, want := range []node.Holder{
		{Value: "one", Token: t, Share: node.Share{Mode: node.Slotted, Slots: 3, Slot: 2}},
		{Value: "two", Token: t + 1, Share: node.Share{Mode: node.Slotted, Slots: 3}},
	} {
		got := l.Holders[i]
		if left := got.Until.Sub(l.Reply.Now); left <= 0 || left > p.long()+p.h.Tolerance {
			p.Errorf("holder %d expires in %v, want up to %v", i, left, p.long())
		}
		got.Until = want.Until
		if got != want {
			p.Errorf("holder %d is %q in %v with %d, want %q in %v with %d", i, got.Value, got.Share, got.Token, want.Value, want.Share, want.Token)
		}
	}
}

func readerBehindWriter(p *probe) {
	first := p.token(0)
	p.expect(node.Granted, p.a, shared(p.acquire("reader", 0)))
	p.expectRank(node.Held, 1, p.a, waiting(p.acquire("writer", 0), first, time.Millisecond))
	p.expectRank(node.Held, 2, p.b, waiting(shared(p.acquire("late", 0)), first, 2*time.Millisecond))
	p.expect(node.Held, p.b, shared(p.acquire("passer-by", 0)))
	// One that came before the writer is let in.
	p.expect(node.Granted, p.b, waiting(shared(p.acquire("early", 0)), first, 0))
	// So is one that barges.
	barging := shared(p.acquire("barger", 0))
	barging.Barge = true
	p.expect(node.Granted, p.b, barging)
	p.holders(3)
}

func readersAtTheHead(p *probe) {
	first := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("holder", 0))
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
}

func slotsForWaiters(p *probe) {
	first := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("holder", 0))
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
}

func kindsHaveOneQueue(p *probe) {
	first := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("holder", 0))
	p.expectRank(node.Held, 1, p.a, waiting(slotted(p.acquire("slot", 0), 2, 0), first, 3*time.Millisecond))
	p.expectRank(node.Held, 1, p.b, waiting(shared(p.acquire("reader", 0)), first, 2*time.Millisecond))
	p.expectRank(node.Held, 1, p.a, waiting(p.acquire("writer", 0), first, time.Millisecond))
	p.expectRank(node.Held, 3, p.b, waiting(slotted(p.acquire("slot", 0), 2, 0), first, 3*time.Millisecond))
	if p.h.Lists {
		l := p.look(p.name)
		if len(l.Waiters) != 3 {
			p.Fatalf("%d waiters are listed, want 3", len(l.Waiters))
		}
		for i, want := range []node.Share{{}, {Mode: node.Shared}, {Mode: node.Slotted, Slots: 2}} {
			if l.Waiters[i].Share != want {
				p.Errorf("waiter %d waits for %v, want %v", i, l.Waiters[i].Share, want)
			}
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
}

func twoReadersAreNotified(p *probe) {
	e := p.listen(p.a)
	first := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("holder", 0))
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
	p.expect(node.Granted, p.a, wait(2))
	p.expect(node.Granted, p.a, wait(3))
	e.expect()
	p.holders(4)
}

func readerBehindLeaver(p *probe) {
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
}

func downgradeNotifies(p *probe) {
	e := p.listen(p.a)
	first := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("holder", 0))
	p.expectRank(node.Held, 1, p.a, waiting(shared(p.acquire("reader", 0)), first, time.Millisecond))
	p.expectRank(node.Held, 2, p.a, waiting(p.acquire("writer", 0), first, 2*time.Millisecond))
	e.expect()
	p.expect(node.Granted, p.b, shared(p.extend("holder", 0)))
	e.expect(turn("reader"))
	p.expect(node.Granted, p.b, shared(p.extend("holder", 0)))
	e.expect()
}

func offerOfAReader(p *probe) {
	e := p.listen(p.a)
	first := p.token(0)
	offer := func(token node.Token, after time.Duration) node.Request {
		return waiting(shared(p.request(node.OpOffer, "holder", token)), first, after)
	}
	t := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("holder", t))
	p.expectRank(node.Held, 1, p.a, waiting(shared(p.acquire("reader", 0)), first, 0))
	p.expectRank(node.Held, 2, p.a, waiting(p.acquire("writer", 0), first, 2*time.Millisecond))
	p.expect(node.Granted, p.a, shared(p.extend("holder", t)))
	e.expect(turn("reader"))
	// The reader came before, and fits beside the holder.
	p.expect(node.Granted, p.a, offer(t+2, time.Millisecond))
	p.fence(t + 2)
	p.expect(node.Stale, p.b, offer(t+2, time.Millisecond))
	// The token of a reader does not bind the next.
	reader := waiting(shared(p.acquire("reader", t+1)), first, 0)
	p.expect(node.Granted, p.a, reader)
	// The writer came later.
	p.expect(node.Granted, p.a, offer(t+3, time.Millisecond))
	p.holders(2)
	e.expect()
	// The writer came before. It has to wait for the other reader yet.
	p.expectRank(node.Reserved, 2, p.a, offer(t+4, 3*time.Millisecond))
	if r := p.holders(1); r.Value != "reader" {
		p.Fatalf("held by %q, want reader", r.Value)
	}
	e.expect()
	p.expect(node.Granted, p.b, shared(p.release("reader", 0)))
	e.expect(turn("writer"))
}

func offerOfAWriter(p *probe) {
	t := p.token(0)
	offer := waiting(p.request(node.OpOffer, "writer", t+5), t, 0)
	p.expect(node.Granted, p.a, p.acquire("writer", t))
	p.expect(node.Granted, p.b, offer)
	p.expect(node.Granted, p.a, p.release("writer", 0))
	p.expect(node.Stale, p.b, shared(p.acquire("reader", t+5)))
	p.expect(node.Granted, p.b, shared(p.acquire("reader", t+6)))
}
