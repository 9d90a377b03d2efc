package redlatch

import (
	"context"
	"sync/atomic"
)

// claim is what stands under one value: the keys that the nodes may have of it.
type claim struct {
	c    *Client
	name string  // as the caller gave it
	req  Request // the OpAcquire, with the token proposed last

	// may is the set of nodes that may have something of it: a grant, an
	// answer that was lost, a place in the queue.
	may atomic.Uint32

	// over is set when nothing under this value may stand any more: asking
	// for it failed, or its lease has ended. What is granted after is undone.
	over atomic.Bool

	// out is the last round of it, while nodes are still to answer, and
	// rounds counts them.
	out    atomic.Pointer[fanout]
	rounds atomic.Int32

	// freed is set when every node has been, or is being, sent a release but
	// those that have not answered the last round.
	freed atomic.Bool
}

// request returns a request about the claim.
func (cl *claim) request(op Op) Request {
	req := cl.req
	req.Op = op
	return req
}

// ask sends the claim to all nodes.
func (cl *claim) ask(ctx context.Context) round {
	release := cl.request(OpRelease)
	round := cl.rounds.Add(1)
	rd := cl.c.ask(ctx, cl.req, 0, func(node int, r NodeResult) {
		// First this, then a look at over: drop does the same the other way
		// round, so that one of the two undoes it.
		cl.note(node, r)
		if !cl.over.Load() || !nodeSet(cl.may.Load()).has(node) {
			return
		}
		// A lower proposal is covered by the release, whose token is higher:
		// it takes away what came before it and makes stale what comes after.
		if cl.freed.Load() && round != cl.rounds.Load() {
			return
		}
		cl.c.undo(node, release)
	})
	for i, r := range rd.results {
		if r.Err != errPending {
			cl.note(i, r)
		}
	}
	if rd.out != nil && rd.out.underway() != 0 {
		cl.out.Store(rd.out)
	} else {
		cl.out.Store(nil)
	}
	return rd
}

// note remembers a node that may have something of the claim.
func (cl *claim) note(node int, r NodeResult) {
	if mayHold(r) || r.Reply.Rank > 0 {
		cl.may.Or(1 << node)
	}
}

// underway returns the nodes that have not answered the claim yet. Once it is
// over, they are undone when they do: a release sent to them now might be
// overtaken by what it is to undo.
func (cl *claim) underway() nodeSet {
	if f := cl.out.Load(); f != nil {
		return f.underway()
	}
	return 0
}

// drop takes the claim back on every node that may have something of it, and
// sees to it that those who have not answered yet are undone when they do. A
// node that said no has nothing, and is left alone.
func (cl *claim) drop() {
	cl.over.Store(true)
	may := nodeSet(cl.may.Load())
	if may|cl.underway() == 0 {
		return
	}
	release := cl.request(OpRelease)
	now := cl.c.clock.Uptime()
	cl.c.dropped.add(release, now+release.TTL+cl.c.opts.NodeTimeout, now)
	for i := range cl.c.members {
		if may.has(i) {
			cl.c.undo(i, release)
		}
	}
}
