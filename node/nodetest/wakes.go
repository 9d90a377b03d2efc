package nodetest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/node"
)

// wakeClaims are for nodes that notify waiters. In them node a sends the
// requests of the waiters, and all its notifications are recorded.
var wakeClaims = []claim{
	{"a release wakes the head, once", func(p *probe) {
		e := p.listen(p.a)
		p.line(p.a, "one", "two", "three")
		e.expect()
		p.expect(node.Granted, p.b, p.release("holder", 0))
		e.expect(turn("one"))
		// The same twice changes nothing: it has been notified.
		p.do(p.b, p.release("holder", 0))
		e.expect()
	}},
	{"a wake carries the fence", func(p *probe) {
		e := p.listen(p.a)
		token := p.take("holder")
		p.expectRank(node.Held, 1, p.a, p.wait("one", token, time.Millisecond))
		p.expect(node.Granted, p.b, p.release("holder", token))
		if heard := e.expect(turn("one")); heard[0].Fence != token {
			p.Fatalf("the wake carries the fence %v, want %v", heard[0].Fence, token)
		}
	}},
	{"who leaves the queue passes its turn on", func(p *probe) {
		e := p.listen(p.a)
		p.line(p.a, "one", "two")
		p.expect(node.Granted, p.b, p.release("holder", 0))
		e.expect(turn("one"))
		p.expect(node.Absent, p.a, p.release("one", 0))
		e.expect(turn("two"))
	}},
	{"nobody is woken while the name is held", func(p *probe) {
		e := p.listen(p.a)
		first := p.line(p.a, "one", "two")
		p.expectRank(node.Held, 1, p.a, p.wait("one", first, time.Millisecond))
		p.expectRank(node.Held, 0, p.b, p.release("passer-by", 0))
		p.expect(node.Granted, p.a, p.extend("holder", 0))
		e.expect()
		// The head leaves. The next one is notified that it is the head, not that
		// the name is free. It was second from the start, and knows that it is
		// near.
		p.expectRank(node.Held, 0, p.a, p.release("one", 0))
		for _, w := range e.take() {
			if w.Kind == node.WakeTurn {
				p.Fatalf("%q was woken while the name is held", w.Value)
			}
		}
	}},
}

// listWakeClaims are for nodes whose waiters have to renew their places.
var listWakeClaims = []claim{
	{"the second in the queue is notified that it is near", func(p *probe) {
		e := p.listen(p.a)
		first := p.line(p.a, "one", "two", "three", "four")
		p.expect(node.Granted, p.b, p.release("holder", 0))
		e.expect(turn("one")) // the answer that queued "two" notified it
		p.expect(node.Granted, p.a, p.wait("one", first, time.Millisecond))
		e.expect(near("three"))
		p.expect(node.Granted, p.a, p.release("one", 0))
		e.expect(turn("two"))
		p.expect(node.Absent, p.a, p.release("three", 0))
		e.expect(near("four")) // the second one now
	}},
	// Only the last waiter answers. Eight are called first, the head among them,
	// then eight times as many.
	{"those behind a silent head are called, ever more, and lapse together", func(p *probe) {
		e := p.listen(p.a)
		silent, living := p.silentLine()
		p.expect(node.Granted, p.b, p.release("holder", 0))
		e.expect(turn(silent[0]))
		p.pass(node.TurnLease + p.tolerance)
		for _, group := range [][]string{silent[1:9], silent[9:]} {
			reply := p.expect(node.Reserved, p.a, living)
			p.left(reply, 0, node.TurnLease) // until it is to look again
			e.expect(append([]node.Wake{turn(group[0])}, called(group[1:]...)...)...)
			p.pass(node.TurnLease + p.tolerance)
		}
		p.expectRank(node.Granted, 0, p.a, living)
	}},
	// The head has no turn while the name is held. It is called like the others, and
	// has no more time than they have: its place may be all that keeps out a reader.
	{"a held name has the same rule for silent waiters", func(p *probe) {
		e := p.listen(p.a)
		silent, living := p.silentLine()
		p.pass(node.WaiterLease + p.tolerance)
		for _, from := range []int{1, 9} {
			p.expectRank(node.Held, 13-from, p.a, living)
			e.expect(called(silent[from:min(from+8, 12)]...)...)
			p.pass(node.TurnLease + p.tolerance)
		}
		p.expectRank(node.Held, 1, p.a, living)
	}},
	{"who asks when it is called keeps its place", func(p *probe) {
		e := p.listen(p.a)
		first := p.line(p.a, "one", "two", "three", "four", "five")
		five := p.wait("five", first, 5*time.Millisecond)
		p.expect(node.Granted, p.b, p.release("holder", 0))
		e.expect(turn("one"))
		p.pass(node.TurnLease + p.tolerance)
		p.expectRank(node.Reserved, 4, p.a, five)
		e.expect(append([]node.Wake{turn("two")}, called("three", "four")...)...)
		p.expect(node.Reserved, p.a, p.wait("three", first, 3*time.Millisecond))
		p.pass(node.TurnLease + p.tolerance)
		p.expectRank(node.Reserved, 2, p.a, five) // the place of "four" is gone, that of "three" is not
		if woken := e.take(); len(woken) > 0 && woken[0].Kind != node.WakeTurn {
			p.Fatalf("the node sent %v, want the turn of \"three\" first", woken)
		}
		p.expectRank(node.Granted, 0, p.a, p.wait("three", first, 3*time.Millisecond))
	}},
}

// yieldClaims are for nodes that keep a queue and can yield a name to its head.
var yieldClaims = []claim{
	{"a yield keeps the name from a higher ticket", func(p *probe) {
		first := p.token(0)
		p.expect(node.Granted, p.a, p.wait("early", first, time.Millisecond))
		p.expectRank(node.Granted, 0, p.a, p.yield("early", first, time.Millisecond))
		p.expectRank(node.Held, 1, p.a, p.wait("late", first, 9*time.Millisecond))
		p.expectRank(node.Granted, 0, p.b, p.yield("early", first, time.Millisecond))
		p.heldBy("early")
	}},
	{"a yield by another value changes nothing", func(p *probe) {
		first := p.token(0)
		p.expect(node.Granted, p.a, p.wait("holder", first, 5*time.Millisecond))
		p.expectRank(node.Held, 1, p.a, p.wait("early", first, time.Millisecond))
		p.expect(node.Held, p.b, p.yield("stranger", first, 9*time.Millisecond))
		p.heldBy("holder")
		p.expect(node.Granted, p.a, p.release("holder", 0))
		p.expect(node.Absent, p.b, p.yield("stranger", first, 9*time.Millisecond))
		p.free()
	}},
	// A yield that was kept is executed a second time: a proxy repeated it.
	// Meanwhile a waiter with a lower ticket has come. What a yield keeps is still held
	// under the token that it was granted with.
	{"a yield gives way to a lower ticket, once", func(p *probe) {
		first := p.token(0)
		req := p.wait("late", first, 9*time.Millisecond)
		req.Token = first
		p.expect(node.Granted, p.a, req)
		yield := p.yield("late", first, 9*time.Millisecond)
		yield.Token = first + 1
		p.wantFence(p.expect(node.Granted, p.a, yield), first+1)
		p.holderToken(first)
		p.expectRank(node.Held, 1, p.a, p.wait("early", first, time.Millisecond))
		p.expect(node.Stale, p.b, yield)
		p.heldBy("late")
		yield.Token++
		p.expectRank(node.Reserved, 2, p.b, yield)
		p.free()
		p.expectRank(node.Reserved, 2, p.b, p.wait("late", first, 9*time.Millisecond))
		p.expectRank(node.Granted, 0, p.a, p.wait("early", first, time.Millisecond))
	}},
}

// ear records a node's notifications.
type ear struct {
	p      *probe
	opened atomic.Int32 // how often the connection for notifications was
	mu     sync.Mutex
	heard  []node.Wake
}

// listen records the node's notifications. It waits until the node can send
// them: a node opens the connection for them only when a waiter needs it.
func (p *probe) listen(n node.Node) *ear {
	p.Helper()
	w, ok := n.(node.Waker)
	if !ok {
		p.Fatalf("the node is no Waker")
	}
	e := &ear{p: p}
	p.Cleanup(w.Listen(func(w node.Wake) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if w.Kind != node.WakeMissed {
			e.heard = append(e.heard, w)
		} else if w.Err == nil {
			e.opened.Add(1)
		}
	}))
	// A waiter has to be refused before the connection is opened.
	first, name := p.token(0), p.name+"/opening"
	p.expect(node.Granted, n, withName(p.acquire("holder", 0), name))
	for range 1000 {
		if p.expect(node.Held, n, withName(p.wait("opener", first, 0), name)).Wakes {
			p.do(n, withName(p.release("opener", 0), name))
			p.do(n, withName(p.release("holder", 0), name))
			e.take()
			return e
		}
		if !p.linger() {
			break
		}
	}
	p.Fatalf("the node queued nobody whom it would wake")
	return nil
}

// linger waits a moment for notifications in flight. It returns false for a
// store whose clock the test controls: such a store notifies before it answers.
func (p *probe) linger() bool {
	if p.h.Advance != nil {
		return false
	}
	time.Sleep(5 * time.Millisecond)
	return true
}

// take returns the notifications since its last call.
func (e *ear) take() (heard []node.Wake) {
	e.mu.Lock()
	defer e.mu.Unlock()
	heard, e.heard = e.heard, nil
	return heard
}

// expect waits until the node has sent the wanted notifications, and checks
// that it sends no others.
func (e *ear) expect(wants ...node.Wake) []node.Wake {
	e.p.Helper()
	heard := e.take()
	for i := 0; len(heard) < len(wants) && i < 400 && e.p.linger(); i++ {
		heard = append(heard, e.take()...)
	}
	e.p.linger() // for notifications that should not come
	heard = append(heard, e.take()...)
	if !slices.EqualFunc(heard, wants, func(a, b node.Wake) bool { return a.Kind == b.Kind && a.Value == b.Value }) {
		if e.p.late != nil && e.opened.Load() > 1 {
			e.p.late.why = "the connection for notifications broke, as one does that is silent for long"
		}
		e.p.Fatalf("the node sent %v, want %v", heard, wants)
	}
	return heard
}

func turn(value string) node.Wake { return node.Wake{Kind: node.WakeTurn, Value: value} }

func called(values ...string) (all []node.Wake) {
	for _, value := range values {
		all = append(all, node.Wake{Kind: node.WakeCall, Value: value})
	}
	return all
}

func near(value string) node.Wake { return node.Wake{Kind: node.WakeNear, Value: value} }

// line queues waiters behind a holder, and returns the first ticket.
func (p *probe) line(n node.Node, waiters ...string) node.Token {
	p.Helper()
	first := p.token(0)
	p.expect(node.Granted, n, p.acquire("holder", 0))
	for i, w := range waiters {
		p.expectRank(node.Held, i+1, n, p.wait(w, first, time.Duration(i+1)*time.Millisecond))
	}
	return first
}

// silentLine queues twelve waiters that do not ask again, and the request of one that
// does.
func (p *probe) silentLine() (silent []string, living node.Request) {
	p.Helper()
	for i := range 12 {
		silent = append(silent, fmt.Sprint("silent ", i))
	}
	first := p.line(p.a, append(slices.Clone(silent), "living")...)
	return silent, p.wait("living", first, 13*time.Millisecond)
}

// yield is an OpYield by a client that arrived this long after the first.
func (p *probe) yield(value string, first node.Token, after time.Duration) node.Request {
	req := p.wait(value, first, after)
	req.Op = node.OpYield
	return req
}
