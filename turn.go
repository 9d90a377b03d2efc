package redlatch

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is what a caller does between two rounds: it takes the lock node by
// node, as they offer it, and gives way to those before it in line.

// gathering is the grants of one token, collected over several requests.
type gathering struct {
	first   uint32        // the number of the first request that counts
	start   time.Duration // on the client's clock, before that was sent
	granted nodeSet
	asked   nodeSet // asked, and not answered yet
	woken   nodeSet // of those, the ones that offered the lock once more meanwhile
	stale   int     // so many answers in a row wanted a higher token
}

// pause is the time between two rounds.
type pause struct {
	w     *waiter
	rd    *round // the round before it, with what was answered since
	g     gathering
	round uint32 // the number of that round's request
	until time.Duration
	timer *time.Timer
	// enough ends it sooner, when the nodes that have not offered the lock had
	// time to.
	enough <-chan time.Time
}

// maxSplit is for how many node time limits a minority of grants is kept before
// all of it is given up.
const maxSplit = 3

// maxMissing is after how many rounds without a quorum, one after the other, a
// caller is queued no more.
const maxMissing = 2

// leastPatience is how long the first node to offer the lock may be ahead of
// the others before these are asked, if a round takes next to no time.
const leastPatience = 5 * time.Millisecond

// pause waits after a round that was not won, for delay at the most. It returns
// a lease if enough nodes offered the lock meanwhile, nothing if it is time for
// another round, or why there is to be none.
func (w *waiter) pause(ctx context.Context, rd *round, delay time.Duration) (*Lease, error) {
	a := w.a
	if holder, _ := rd.taken(); holder != a.holder {
		a.left, a.holder = 0, ""
	}
	p := &pause{w: w, rd: rd, round: a.number, until: a.c.clock.Uptime() + delay,
		g: gathering{first: a.number, start: rd.start}}
	p.timer = time.NewTimer(delay)
	defer p.timer.Stop()
	switch {
	case !rd.available() && rd.nodes > 1:
		// Cut off from the others, we would be in everyone's way: we leave
		// every line. A round that is missed now and then may be for want of
		// time alone, and the next one has our old place back. If there are
		// more of them, we are queued nowhere until we see a quorum.
		p.giveUp(w.random())
		a.req.Wait = a.req.Wait && w.missing <= maxMissing
	default:
		p.giveWay(ctx, rd.grants())
	}
	if delay <= 0 {
		// All are asked now: what happened meanwhile would have one of them
		// asked twice.
		return nil, p.end()
	}
	for {
		select {
		case <-p.timer.C:
			return nil, p.end()
		case <-p.enough:
			return nil, p.end()
		case <-ctx.Done():
			return nil, endedError(ctx, w.failure)
		case <-a.c.background.closing:
			return nil, ErrClosed
		case e := <-a.events:
			if e.claim != a.claim {
				continue // it was on its way when we gave that up
			}
			if lease, again := p.happened(ctx, e); lease != nil || again {
				return lease, p.end()
			}
		}
	}
}

func (p *pause) end() error {
	if p.g.granted == 0 {
		p.w.split = 0
	}
	return nil
}

// within has the pause end no later than in d.
func (p *pause) within(d time.Duration) {
	now := p.w.a.c.clock.Uptime()
	if now+d < p.until {
		p.until = now + d
		p.timer.Reset(d)
	}
}

// happened takes in an event. It returns a lease if that makes a quorum, and
// reports whether it is time for another round.
func (p *pause) happened(ctx context.Context, e event) (*Lease, bool) {
	w := p.w
	switch e.wake.Kind {
	case node.WakeNear:
		if !w.front {
			w.front = true
			p.within(pollMost)
		}
		return nil, false
	case node.WakeTurn, node.WakeCall, node.WakeMissed:
		if e.wake.Kind.Asks() && !w.front {
			// If we do not get the lock now, we lose our place unless we renew
			// it.
			w.front = true
			p.within(pollMost)
		}
		return nil, !p.follow(ctx, e.node, e.wake.Fence)
	}
	before, _ := p.rd.rank()
	lease, again := p.take(ctx, e)
	if lease != nil || again {
		return lease, again
	}
	if after, _ := p.rd.rank(); before == 0 && after > 0 {
		p.within(w.delay(p.rd, w.a.c.clock.Uptime()))
	}
	if p.g.asked|p.g.granted == 0 {
		p.enough = nil
	}
	return nil, false
}

// giveWay sees to grants of a round that was not won, so that two callers with
// a minority each do not wait for each other.
func (p *pause) giveWay(ctx context.Context, granted nodeSet) {
	w, a := p.w, p.w.a
	now := a.c.clock.Uptime()
	switch {
	case granted == 0:
		return
	case !p.rd.queued():
		// Nobody stands in line here, and chance must settle it.
		p.giveUp(0)
		return
	case w.split != 0 && now-w.split >= maxSplit*a.c.patience():
		p.giveUp(w.random() / 4)
		return
	}
	holder, taken := p.rd.taken()
	if taken {
		if !a.leave(ctx, granted, holder) {
			p.giveUp(w.random() / 4)
		}
		return
	}
	kept, next, ok := a.offer(ctx, granted)
	if !ok {
		p.giveUp(w.random() / 4)
		return
	}
	p.g.granted |= kept
	// Where those before us turned out to be gone, it is our turn.
	for i := range a.c.members {
		if next.has(i) {
			p.follow(ctx, i, 0)
		}
	}
	if kept == 0 {
		return
	}
	if w.split == 0 {
		w.split = now
	}
	p.within(a.c.patience())
}

// giveUp takes back all that we have and goes on under a new value, after delay
// or, if that is 0, when the pause is over.
func (p *pause) giveUp(delay time.Duration) {
	p.w.split = 0
	p.w.a.again()
	p.g, p.round = gathering{}, 0
	if delay > 0 {
		p.within(delay)
	}
}

// offer leaves nodes to those who are before us in line there. It returns those
// that we keep, and those where nobody is before us any more. It reports false
// if nothing can be built on this value any more.
func (a *attempt) offer(ctx context.Context, nodes nodeSet) (kept, next nodeSet, ok bool) {
	ok = a.yield(ctx, node.OpOffer, nodes, func(i int, r node.Reply) {
		switch {
		case r.Status == node.Granted:
			kept |= 1 << i
		case r.Status == node.Reserved && r.Rank == 1:
			next |= 1 << i
		}
	})
	if ok {
		a.lacks(nodes &^ kept)
	}
	return kept, next, ok
}

// leave frees nodes that are of no use to us, because somebody has a quorum
// without them, and has them left alone as long as that one has it: it is to
// have them too, so that it outlives the loss of others. It reports false as
// offer does.
func (a *attempt) leave(ctx context.Context, nodes nodeSet, holder string) bool {
	if !a.yield(ctx, node.OpRelease, nodes, func(int, node.Reply) {}) {
		return false
	}
	a.lacks(nodes)
	if a.holder != holder {
		a.left, a.holder = 0, holder
	}
	a.left |= nodes
	return true
}

// yield asks nodes to give up what a value has that we go on with, and hands
// their replies to told. It reports false if a node did not answer: then it may
// free the lock there at any later time, and nothing can be built on this value
// any more.
//
// A copy of such a request that comes later, from a driver or proxy that repeats
// what it had no answer to, must not free what the value has been granted since.
// So it has a token of its own, above those before it and below those after. One
// that is not above the fence changes nothing, and is sent again with a higher
// token: to tell of a fence is all that a node may do with it, now or later.
func (a *attempt) yield(ctx context.Context, op node.Op, nodes nodeSet, told func(at int, r node.Reply)) bool {
	req := a.request(op)
	req.Once = true
	floor := max(req.Token, a.above)
	for range maxProposals {
		if req.Token != 0 {
			// No higher than it must be: others may have proposed meanwhile, and
			// are not to find themselves stale.
			req.Token = floor + 1
			a.above = req.Token
		}
		rd := a.c.ask(ctx, a.name, req, allNodes(len(a.c.members))&^nodes, nil, nil)
		var stale nodeSet
		for i, r := range rd.results {
			switch {
			case !nodes.has(i):
			case r.Err != nil || r.Reply.Status == node.Ahead:
				return false
			case r.Reply.Status == node.Stale:
				stale |= 1 << i
				floor = max(floor, r.Reply.Fence)
			default:
				told(i, r.Reply)
			}
		}
		if stale == 0 {
			return true
		}
		if nodes = stale; floor > a.plausible() {
			return false
		}
	}
	return false
}

// follow asks a node that offers the lock. It reports false if all must be
// asked again, with a higher token.
func (p *pause) follow(ctx context.Context, i int, fence Token) bool {
	a, g := p.w.a, &p.g
	a.fence = max(a.fence, fence)
	switch {
	case g.granted.has(i):
		return true
	case g.asked.has(i):
		// The answer under way may be from before this.
		g.woken |= 1 << i
		return true
	case g.granted|g.asked == 0:
		a.propose()
		*g = gathering{first: a.number + 1, start: a.c.clock.Uptime(), stale: g.stale}
		p.w.rounds++
	case a.req.Token != 0 && fence >= a.req.Token:
		return false
	}
	g.asked |= 1 << i
	a.askOne(ctx, i)
	return true
}

// take counts a node's answer.
func (p *pause) take(ctx context.Context, e event) (lease *Lease, again bool) {
	a, g, rd, r := p.w.a, &p.g, p.rd, e.result
	if e.number < g.first || !a.latest(e.node, e.number) {
		// What counts is the answer to the last request that a node was sent.
		return nil, false
	}
	late := e.number == p.round // of the round itself, which was not won
	bit := nodeSet(1) << e.node
	woken := g.woken&bit != 0
	g.asked &^= bit
	g.woken &^= bit
	granted := r.Err == nil && r.Reply.Status == node.Granted
	if granted {
		r = once(rd.results, g.granted, r)
		granted = r.Err == nil
	}
	rd.results[e.node] = r
	switch {
	case r.Err != nil:
		return nil, false
	case granted && late:
		p.giveWay(ctx, bit)
	case granted:
		g.granted |= bit
		g.stale = 0
		if p.enough == nil {
			p.enough = time.After(max(leastPatience, 4*rd.elapsed))
		}
	default:
		a.fence = max(a.fence, r.Reply.Fence)
		if d, ok := p.w.lookIn(r); ok {
			p.within(d)
		}
		return nil, !late && !p.refused(ctx, e.node, r.Reply.Status, woken)
	}
	if g.granted.count() < quorumOf(rd.nodes) {
		return nil, false
	}
	won := round{start: g.start, elapsed: a.c.clock.Uptime() - g.start, results: rd.results,
		tally: tally{nodes: rd.nodes, granted: g.granted.count()}}
	a.c.roundEnd(ctx, a.name, a.req.Op, &won)
	lease, p.w.failure = a.settle(&won)
	return lease, lease == nil
}

// refused sees to a node that offered the lock and then did not grant it. It
// reports false if all must be asked again.
func (p *pause) refused(ctx context.Context, i int, status node.Status, woken bool) bool {
	switch status {
	case node.Stale, node.Behind, node.Ahead:
		p.g.stale++
		if p.g.granted|p.g.asked != 0 {
			return false
		}
		woken = p.g.stale < maxProposals // the next token will be higher
	}
	return !woken || p.follow(ctx, i, 0)
}

// grants returns the nodes that have granted.
func (rd *round) grants() (granted nodeSet) {
	for i, r := range rd.results {
		if r.Err == nil && r.Reply.Status == node.Granted {
			granted |= 1 << i
		}
	}
	return granted
}

// taken returns who else has a quorum, if anybody.
func (rd *round) taken() (holder string, taken bool) {
	for _, r := range rd.results {
		if r.Err != nil || r.Reply.Status != node.Held {
			continue
		}
		same := 0
		for _, other := range rd.results {
			if other.Err == nil && other.Reply.Status == node.Held && other.Reply.Value == r.Reply.Value {
				same++
			}
		}
		if same >= quorumOf(rd.nodes) {
			return r.Reply.Value, true
		}
	}
	return "", false
}

// queued reports whether a quorum of nodes either granted, or know us in a
// queue.
func (rd *round) queued() bool {
	granted, ranked := 0, 0
	for _, r := range rd.results {
		switch {
		case r.Err != nil:
		case r.Reply.Status == node.Granted:
			granted++
		case r.Reply.Rank > 0:
			ranked++
		}
	}
	return ranked > 0 && granted+ranked >= quorumOf(rd.nodes)
}
