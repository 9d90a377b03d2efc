package nodetest

import "github.com/redlatch/redlatch/node"

// holdClaims are about acquiring a name, keeping it and losing it.
func holdClaims() []claim {
	return []claim{
		{"a free name is granted", freeNameIsGranted},
		{"a refused caller learns who holds, and for how long", refusedCallerIsTold},
		{"the node's clock runs on", clockRunsOn},
		{"asking again is granted and refreshes", askingAgainRefreshes},
		{"release frees the name", releaseFrees},
		{"release by another value changes nothing", releaseByAnother},
		{"releasing twice is harmless", releasingTwice},
		{"extend lengthens", extendLengthens},
		{"extend by another value changes nothing", extendByAnother},
		{"extend never creates", extendNeverCreates},
		{"a lock expires by itself", expiryFrees},
		{"inspect changes nothing", inspectChangesNothing},
		{"closing a node leaves its locks", closingLeavesLocks},
	}
}

func freeNameIsGranted(p *probe) {
	p.free()
	p.expect(node.Granted, p.a, p.acquire("one", 0))
	p.heldBy("one")
}

func refusedCallerIsTold(p *probe) {
	token := p.token(0)
	p.expect(node.Granted, p.a, p.acquire("one", token))

	reply := p.expect(node.Held, p.b, p.acquire("two", token+1))
	if reply.Value != "one" {
		p.Errorf("the holder is said to be %q, want %q", reply.Value, "one")
	}
	if reply.Left <= 0 || reply.Left > p.long() {
		p.Errorf("the time left is said to be %v, want more than 0 and at most %v", reply.Left, p.long())
	}
	p.wantFence(reply, token)

	p.pass(p.h.Unit)
	later := p.expect(node.Held, p.b, p.acquire("two", token+1))
	if most := reply.Left - p.h.Unit + p.h.Tolerance; later.Left > most {
		p.Errorf("the time left is %v after %v have gone by from %v", later.Left, p.h.Unit, reply.Left)
	}
}

func clockRunsOn(p *probe) {
	first := p.free().Now
	p.pass(p.h.Unit)
	granted := p.expect(node.Granted, p.a, p.acquire("one", 0)).Now
	if ran := granted.Sub(first); ran < p.h.Unit-p.h.Tolerance {
		p.Errorf("the node's clock went on by %v in %v", ran, p.h.Unit)
	}
	held := p.expect(node.Held, p.b, p.acquire("two", 0)).Now
	if held.Before(granted.Add(-p.h.Tolerance)) {
		p.Errorf("the node's clock went back from %v to %v", granted, held)
	}
}

func askingAgainRefreshes(p *probe) {
	p.expect(node.Granted, p.a, withTTL(p.acquire("one", 0), p.long()/2))
	p.expect(node.Granted, p.b, p.acquire("one", 0))
	if left := p.heldBy("one").Left; left <= p.long()/2 {
		p.Errorf("the time left is %v after asking again for %v", left, p.long())
	}
}

func releaseFrees(p *probe) {
	p.expect(node.Granted, p.a, p.acquire("one", 0))
	p.expect(node.Granted, p.a, p.release("one", 0))
	p.free()
	p.expect(node.Granted, p.b, p.acquire("two", 0))
}

func releaseByAnother(p *probe) {
	p.expect(node.Granted, p.a, p.acquire("one", 0))
	if reply := p.expect(node.Held, p.b, p.release("two", 0)); reply.Value != "one" {
		p.Errorf("the holder is said to be %q, want %q", reply.Value, "one")
	}
	p.heldBy("one")
}

func releasingTwice(p *probe) {
	p.expect(node.Granted, p.a, p.acquire("one", 0))
	p.expect(node.Granted, p.a, p.release("one", 0))
	p.expect(node.Absent, p.a, p.release("one", 0))
	p.expect(node.Granted, p.b, p.acquire("two", 0))
	p.expect(node.Held, p.a, p.release("one", 0))
	p.heldBy("two")
}

func extendLengthens(p *probe) {
	short := 5 * p.h.Unit
	p.expect(node.Granted, p.a, withTTL(p.acquire("one", 0), short))
	p.expect(node.Granted, p.b, p.extend("one", 0))
	if left := p.heldBy("one").Left; left <= short || left > p.long() {
		p.Errorf("the time left is %v after extending from %v to %v", left, short, p.long())
	}
	p.outlast(short)
	p.heldBy("one")
}

func extendByAnother(p *probe) {
	half := p.long() / 2
	p.expect(node.Granted, p.a, withTTL(p.acquire("one", 0), half))
	if reply := p.expect(node.Held, p.b, p.extend("two", 0)); reply.Value != "one" {
		p.Errorf("the holder is said to be %q, want %q", reply.Value, "one")
	}
	if left := p.heldBy("one").Left; left > half {
		p.Errorf("the time left grew from %v to %v", half, left)
	}
}

func extendNeverCreates(p *probe) {
	p.expect(node.Absent, p.a, p.extend("one", 0))
	p.free()

	p.expect(node.Granted, p.a, withTTL(p.acquire("one", 0), p.h.Unit))
	p.outlast(p.h.Unit)
	p.expect(node.Absent, p.a, p.extend("one", 0))
	p.free()

	p.expect(node.Granted, p.a, p.acquire("one", 0))
	p.expect(node.Granted, p.a, p.release("one", 0))
	p.expect(node.Absent, p.a, p.extend("one", 0))
	p.free()
}

func expiryFrees(p *probe) {
	p.expect(node.Granted, p.a, withTTL(p.acquire("one", 0), p.h.Unit))
	p.outlast(p.h.Unit)
	p.free()
	p.expect(node.Granted, p.b, p.acquire("two", 0))
	p.expect(node.Held, p.a, p.acquire("one", 0))
}

func inspectChangesNothing(p *probe) {
	asked := p.inspect()
	asked.Value, asked.Token, asked.Wait = "one", p.token(0), true
	p.expect(node.Absent, p.a, asked)
	p.wantFence(p.free(), 0)

	half := p.long() / 2
	p.expect(node.Granted, p.a, withTTL(p.acquire("one", 0), half))
	if reply := p.expect(node.Held, p.a, asked); reply.Value != "one" {
		p.Errorf("the holder is said to be %q, want %q", reply.Value, "one")
	}
	asked.Value = "two"
	if reply := p.expect(node.Held, p.b, asked); reply.Rank != 0 {
		p.Errorf("inspecting put the caller into the queue, at %d", reply.Rank)
	}
	reply := p.heldBy("one")
	p.wantFence(reply, 0)
	if reply.Left > half {
		p.Errorf("the time left grew from %v to %v", half, reply.Left)
	}
}

func closingLeavesLocks(p *probe) {
	p.expect(node.Granted, p.a, p.acquire("one", 0))
	p.close(&p.a)
	if reply := p.expect(node.Held, p.b, p.acquire("two", 0)); reply.Value != "one" {
		p.Errorf("the holder is said to be %q, want %q", reply.Value, "one")
	}
	p.expect(node.Granted, p.b, p.release("one", 0))
}
