package redlatch

import (
	"context"
	"time"
)

// This file is what a caller does between two rounds: it takes the lock node by
// node, as they offer it, and gives way to those before it in line.

// gathering is the grants of one token, collected over several requests.
type gathering struct {
	first   uint32        // the number of the first request that counts
	start   time.Duration // on the client's clock, before that was sent
	granted nodeSet
	asked   nodeSet // asked, and not answered yet
}

// maxSplit is for how many node time limits a minority of grants is kept before
// all of it is given up.
const maxSplit = 3

// pause waits after a round that was not won, for delay at the most. It returns
// a lease if enough nodes offered the lock meanwhile, nothing if it is time for
// another round, or why there is to be none.
func (w *waiter) pause(ctx context.Context, rd *round, delay time.Duration) (*Lease, error) {
	a := w.a
	g := gathering{first: a.number, start: rd.start, granted: rd.grants()}
	delay = w.giveWay(ctx, rd, &g, delay)
	timer := time.NewTimer(delay)
	defer timer.Stop()
	var enough <-chan time.Time // the other nodes have had time to offer it too
	for {
		select {
		case <-timer.C:
			return nil, nil
		case <-enough:
			return nil, nil
		case <-ctx.Done():
			return nil, endedError(ctx, w.failure)
		case <-a.c.background.closing:
			return nil, ErrClosed
		case e := <-a.events:
			if e.claim != a.claim {
				continue // it was on its way when we gave that up
			}
			switch e.wake.Kind {
			case WakeNear:
				if !w.front {
					w.front = true
					timer.Reset(min(delay, pollMost))
				}
				continue
			case WakeTurn, WakeMissed:
				if !w.follow(ctx, &g, e) {
					return nil, nil
				}
				continue
			}
			before, _ := rd.rank()
			lease, again := w.take(ctx, rd, &g, e)
			if lease != nil || again {
				return lease, nil
			}
			if after, _ := rd.rank(); before == 0 && after > 0 {
				timer.Reset(min(delay, w.delay(rd, a.c.clock.Uptime())))
			}
			switch {
			case g.asked|g.granted == 0:
				enough = nil
			case enough == nil && g.granted != 0:
				enough = time.After(max(leastPatience, 4*rd.elapsed))
			}
		}
	}
}

// leastPatience is how long the first node to offer the lock may be ahead of
// the others before these are asked, if a round takes next to no time.
const leastPatience = 5 * time.Millisecond

// giveWay sees to the grants of a round that was not won, so that two callers
// with a minority each do not wait for each other. It returns how long to
// wait.
func (w *waiter) giveWay(ctx context.Context, rd *round, g *gathering, delay time.Duration) time.Duration {
	a := w.a
	now := a.c.clock.Uptime()
	switch {
	case !rd.available() && rd.nodes > 1:
		// Cut off from the others, we would be in everyone's way: we leave
		// every line, and come back behind those who are there.
		w.takeTicket()
		w.split = 0
		a.again()
		*g = gathering{}
		return w.random()
	case g.granted == 0:
		w.split = 0
		return delay
	case !rd.queued():
		// Nobody stands in line here, and chance must settle it.
		w.split = 0
		a.again()
		*g = gathering{}
		return delay
	}
	if w.split == 0 {
		w.split = now
	} else if now-w.split >= maxSplit*a.c.opts.NodeTimeout {
		w.split = 0
		a.again()
		*g = gathering{}
		return w.random() / 4
	}
	kept, ok := a.offer(ctx, g.granted)
	if !ok {
		w.split = 0
		a.again()
		*g = gathering{}
		return w.random() / 4
	}
	g.granted = kept
	if kept == 0 {
		return delay
	}
	return min(delay, a.c.opts.NodeTimeout)
}

// offer leaves nodes to those who are before us in line there, and returns
// those that we keep. It reports false if a node did not answer: then it may
// free the lock there at any later time, and nothing can be built on this value
// any more.
func (a *attempt) offer(ctx context.Context, nodes nodeSet) (kept nodeSet, ok bool) {
	rd := a.c.ask(context.WithoutCancel(ctx), a.request(OpOffer), allNodes(len(a.c.members))&^nodes, nil, nil)
	for i, r := range rd.results {
		switch {
		case !nodes.has(i):
		case r.Err != nil:
			return 0, false
		case r.Reply.Status == Granted:
			kept |= 1 << i
		}
	}
	return kept, true
}

// follow asks the node that offers the lock. It reports false if all must be
// asked again, with a higher token.
func (w *waiter) follow(ctx context.Context, g *gathering, e event) bool {
	a := w.a
	a.fence = max(a.fence, e.wake.Fence)
	switch {
	case (g.granted | g.asked).has(e.node):
		return true
	case g.granted|g.asked == 0:
		a.propose()
		*g = gathering{first: a.number + 1, start: a.c.clock.Uptime()}
		w.rounds++
	case a.req.Token != 0 && e.wake.Fence >= a.req.Token:
		return false
	}
	g.asked |= 1 << e.node
	a.askOne(ctx, e.node)
	return true
}

// take counts a node's answer. It returns a lease if that makes a quorum, and
// reports whether all must be asked again.
func (w *waiter) take(ctx context.Context, rd *round, g *gathering, e event) (lease *Lease, again bool) {
	a, r := w.a, e.result
	if e.number < g.first {
		return nil, false
	}
	g.asked &^= 1 << e.node
	if r.Err == nil && r.Reply.Status == Granted {
		r = once(rd.results, g.granted, r)
	}
	rd.results[e.node] = r
	if r.Err != nil {
		return nil, false
	}
	a.fence = max(a.fence, r.Reply.Fence)
	switch r.Reply.Status {
	case Stale, Behind, Ahead:
		return nil, true
	case Granted:
		g.granted |= 1 << e.node
	}
	if g.granted.count() < quorumOf(rd.nodes) {
		return nil, false
	}
	won := round{start: g.start, elapsed: a.c.clock.Uptime() - g.start, results: rd.results,
		tally: tally{nodes: rd.nodes, granted: g.granted.count()}}
	a.c.roundEnd(ctx, a.req, &won)
	a.c.guard.won()
	lease, w.failure = a.settle(&won)
	return lease, lease == nil
}

// grants returns the nodes that have granted.
func (rd *round) grants() (granted nodeSet) {
	for i, r := range rd.results {
		if r.Err == nil && r.Reply.Status == Granted {
			granted |= 1 << i
		}
	}
	return granted
}

// queued reports whether a quorum of nodes either granted, or know us in a
// queue.
func (rd *round) queued() bool {
	granted, ranked := 0, 0
	for _, r := range rd.results {
		switch {
		case r.Err != nil:
		case r.Reply.Status == Granted:
			granted++
		case r.Reply.Rank > 0:
			ranked++
		}
	}
	return ranked > 0 && granted+ranked >= quorumOf(rd.nodes)
}
