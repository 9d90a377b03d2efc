package redlatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// claim is what stands under one value: the keys that the nodes may have of it,
// and its places in their queues.
type claim struct {
	c    *Client
	name string       // as the caller gave it
	req  node.Request // the OpAcquire, with the token proposed last

	mu sync.Mutex

	// may is the set of nodes that may have something of it: a grant, an
	// answer that was lost, a place in the queue.
	may nodeSet

	// has is the set of nodes that granted it.
	has nodeSet

	// open is the set of nodes that have not answered the last request that
	// they were sent, and sent is which that was, by number.
	open   nodeSet
	number uint32
	sent   [MaxNodes]uint32

	// owed is how many requests have had no answer, and lost is set once one
	// will never have any: they may yet be carried out. earlier is the tokens
	// that were asked with before proposed, the last.
	owed     int
	lost     bool
	earlier  proposals
	proposed Token

	// over is set when nothing under this value may stand any more: asking
	// for it failed, or its lease has ended. What is granted after is undone.
	over bool

	// freed is the set of nodes that have been, or are being, sent a release.
	freed nodeSet

	// ended is set when it is over or stands without us.
	ended bool

	// heard is set while the claim is known to the inbox, which it is as soon
	// as a node has queued it.
	heard bool
	// events is where a waiting caller hears of wakes and late answers; nil
	// before it begins to wait, and once it waits no more.
	events chan event
	// early is the set of nodes that offered the lock before that.
	early nodeSet
	// won is set when the claim has become a lease.
	won bool
}

// event is something that happened to a claim while its caller waits.
type event struct {
	claim *claim
	node  int
	wake  node.Wake
	// Where wake says nothing: the answer to the request of that number.
	result NodeResult
	number uint32
}

// request returns a request about the claim.
func (cl *claim) request(op node.Op) node.Request {
	req := cl.req
	req.Op = op
	return req
}

// release returns the request that takes the claim back. Its token is no lower
// than that of any request which may still be on its way, so that it makes all
// of them stale: before we know how far our clock is off, proposals may be above
// the one that is granted in the end. Those that are so far off that no node
// would grant them do not count, since no node would let them raise its fence.
func (cl *claim) release() node.Request {
	req := cl.request(node.OpRelease)
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.owed > 0 || cl.lost {
		req.Token = max(req.Token, cl.earlier.upTo(cl.c.plausible(req.Window)))
	}
	return req
}

// proposals is the tokens that a claim was asked for with, however many: the
// lowest and the highest of them. Both are 0 if there are none.
type proposals struct{ least, most Token }

func (p *proposals) add(t Token) {
	if p.least == 0 || t < p.least {
		p.least = t
	}
	p.most = max(p.most, t)
}

// upTo returns a token that is no lower than any proposal up to most, and no
// higher than most; 0 if every proposal is above it. Where some are, because our
// clock was put right in between, it is most itself.
func (p *proposals) upTo(most Token) Token {
	if p.least > most {
		return 0
	}
	return min(p.most, most)
}

// ask sends the claim to all nodes but those in skip, and waits for the outcome.
func (cl *claim) ask(ctx context.Context, skip nodeSet) round {
	req := cl.req
	number := cl.send(allNodes(len(cl.c.members)) &^ skip)
	return cl.c.ask(ctx, cl.name, req, skip,
		func(i int, r NodeResult) { cl.answered(number, i, r, req) },
		func(i int, r NodeResult) { cl.post(event{node: i, result: r, number: number}) })
}

// askOne sends the claim to one node, in the background unless it can be called
// inline, and posts the answer.
func (cl *claim) askOne(ctx context.Context, i int) {
	c, req := cl.c, cl.req
	number := cl.send(1 << i)
	if !c.background.start() {
		cl.answered(number, i, NodeResult{Node: c.members[i].name, Err: ErrUnsent}, req)
		return
	}
	inline := c.inline(ctx)
	ask := func() {
		defer c.background.end()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.limit(req))
		defer cancel()
		r := c.members[i].call(ctx, req)
		cl.answered(number, i, r, req)
		cl.post(event{node: i, result: r, number: number})
	}
	if inline {
		ask()
	} else {
		go ask()
	}
}

// send notes that a request goes to the nodes, and returns its number.
func (cl *claim) send(nodes nodeSet) uint32 {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.owed == 0 && !cl.lost {
		cl.earlier, cl.proposed = proposals{}, 0 // nothing of them can come any more
	}
	cl.number++
	cl.open |= nodes
	for i := range cl.c.members {
		if nodes.has(i) {
			cl.sent[i] = cl.number
			cl.owed++
		}
	}
	if cl.proposed != cl.req.Token {
		if cl.proposed != 0 {
			cl.earlier.add(cl.proposed)
		}
		cl.proposed = cl.req.Token
	}
	return cl.number
}

// answered takes in a node's answer to the request of that number: what is
// granted to a claim that is over is undone.
func (cl *claim) answered(number uint32, i int, r NodeResult, req node.Request) {
	cl.mu.Lock()
	last := cl.sent[i] == number
	if last {
		cl.open &^= 1 << i
	}
	cl.owed--
	cl.lost = cl.lost || r.Err != nil && !errors.Is(r.Err, ErrUnsent)
	if mayHold(r) || r.Reply.Rank > 0 {
		cl.may |= 1 << i
	}
	if r.Err == nil && r.Reply.Status == node.Granted {
		cl.has |= 1 << i
	}
	if r.Reply.Rank > 0 && !cl.heard && !cl.ended {
		cl.early |= cl.c.inbox.expect(cl)
		if cl.won {
			defer cl.catchUp()
		}
	}
	undo, released := cl.over && cl.may.has(i), cl.freed.has(i)
	if req.Op == node.OpRepair {
		// It asks for a fence that is not at the token. A release makes it
		// stale only until the next holder's fence is there, and then one that
		// was overtaken is granted.
		released = false
	}
	cl.mu.Unlock()
	if !undo {
		return
	}
	release := cl.release()
	switch {
	case !released:
		cl.c.undo(i, release)
	case r.Err == nil && r.Reply.Status == node.Granted && req.Token > release.Token:
		// So far off was our clock that this was not thought possible.
		release.Token = req.Token
		cl.c.undo(i, release)
	case req.Token != 0:
		// The release that the node was sent has a token that is no lower: it
		// takes away what came before it, and makes stale what comes after.
	default:
		// Without tokens it may have come first. But if it has not come yet,
		// the holder is to hear that it was not too late.
		cl.c.undoLater(i, release)
	}
}

// post tells a waiting caller what happened. What it has no room for is lost:
// it asks again by itself after a while. It reports false for a wake that
// comes when the claim is won.
func (cl *claim) post(e event) bool {
	cl.mu.Lock()
	events := cl.events
	if events == nil && !cl.won && e.wake.Kind.Asks() {
		cl.early |= 1 << e.node
	}
	won := cl.won
	cl.mu.Unlock()
	if events == nil {
		return !won
	}
	e.claim = cl
	select {
	case events <- e:
	default:
	}
	return true
}

// end has the claim stand no more, except where it is to stand without us. A
// claim that is freed is being sent a release on every node, except for those
// that have granted nothing and have not answered yet: they are undone when
// they do, since a release sent to them now might be overtaken by what it is to
// undo.
func (cl *claim) end(over, freed bool) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.ended, cl.over, cl.events = true, over, nil
	if freed {
		cl.freed = allNodes(len(cl.c.members)) &^ (cl.open &^ cl.has)
	}
	cl.c.inbox.forget(cl)
}

// remember has the client know the claim's value for as long as a late request
// may have something of it: a key, or a place in line.
func (cl *claim) remember(released bool) {
	release := cl.release()
	now, left := cl.c.clock.Uptime(), cl.c.lateness(release)
	if released {
		left = min(left, latePlace)
	}
	cl.c.dropped.add(leftover{req: release, until: now + left, released: released}, now)
}

// latePlace is how long after its release a lease may still be queued by a
// request that comes late. Longer than that is taken for never: the place then
// costs those behind it a second.
const latePlace = 10 * time.Second

// isOver reports that nothing under the claim's value may stand any more.
func (cl *claim) isOver() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.over
}

// underway returns the nodes that are not being sent a release.
func (cl *claim) underway() nodeSet {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return allNodes(len(cl.c.members)) &^ cl.freed
}

// latest reports whether a request was the last that the node was sent.
func (cl *claim) latest(i int, number uint32) bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.sent[i] == number
}

// lacks notes that nodes have been left to others.
func (cl *claim) lacks(nodes nodeSet) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.has &^= nodes
}

// hear has wakes and late answers come to events.
func (cl *claim) hear(events chan event) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	cl.events = events
	if !cl.heard {
		cl.early |= cl.c.inbox.expect(cl)
	}
	for i := range cl.c.members {
		if cl.early.has(i) {
			events <- event{claim: cl, node: i, wake: node.Wake{Kind: node.WakeTurn}}
		}
	}
	cl.early = 0
}

// win has the claim stand as a lease. Nodes that offer the lock from now on are
// asked for it in the background.
func (cl *claim) win() {
	cl.mu.Lock()
	events := cl.events
	cl.won, cl.events = true, nil
	cl.mu.Unlock()
	for {
		select {
		case e := <-events:
			if e.wake.Kind.Asks() {
				cl.followUp(e.node)
			}
		default:
			cl.catchUp()
			return
		}
	}
}

// catchUp asks the nodes that offered the lock while nobody listened.
func (cl *claim) catchUp() {
	cl.mu.Lock()
	early := cl.early
	cl.early = 0
	cl.mu.Unlock()
	for i := range cl.c.members {
		if early.has(i) {
			cl.followUp(i)
		}
	}
}

// followUp takes what a node offers to a claim that was won without it: the
// lease then stands there too, and the node's queue moves on.
func (cl *claim) followUp(i int) {
	cl.mu.Lock()
	has := cl.has.has(i)
	cl.mu.Unlock()
	if !has {
		go cl.askOne(context.Background(), i)
	}
}

// drop takes the claim back on every node that may have something of it, and
// sees to it that those who have not answered yet are undone when they do. A
// node that said no has nothing, and is left alone.
func (cl *claim) drop() {
	cl.end(true, false)
	cl.mu.Lock()
	may, open := cl.may, cl.open
	cl.mu.Unlock()
	if may|open == 0 {
		return
	}
	cl.remember(false)
	release := cl.release()
	for i := range cl.c.members {
		if may.has(i) {
			cl.c.undo(i, release)
		}
	}
}
