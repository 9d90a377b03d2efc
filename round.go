package redlatch

import (
	"context"
	"sync"
	"time"
)

// This file is the Redlock round: one request to all nodes at once, settled by
// the answers of a majority. The counting and the arithmetic are pure; what a
// node is, it need not know.

// quorumOf returns the smallest majority of n nodes.
func quorumOf(n int) int { return n/2 + 1 }

// driftOf returns how much of a time to live is given up for clocks that run
// at different rates, and for the resolution in which nodes expire keys.
func driftOf(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// validityOf returns how long a lock can be relied on after a round that took
// elapsed from its first send. It is not positive if the round took too long.
func validityOf(ttl, elapsed time.Duration) time.Duration {
	return ttl - elapsed - driftOf(ttl)
}

// tally counts the answers of one round.
type tally struct {
	nodes   int
	granted int
	refused int // said no
	sitting int // of those, because they may have forgotten locks
	failed  int // did not answer in time, or with an error
}

func (t *tally) count(r NodeResult) {
	switch {
	case r.Err != nil:
		t.failed++
	case r.Reply.Status == Granted:
		t.granted++
	default:
		t.refused++
		if r.Reply.Status == Quarantined || r.Reply.Status == Misconfigured {
			t.sitting++
		}
	}
}

// won reports that a quorum has granted.
func (t *tally) won() bool { return t.granted >= quorumOf(t.nodes) }

// hopeless reports that no quorum can grant any more, and that it is known why:
// because others have the lock, or for want of nodes. Where nodes sit out it
// does not say so before all have answered: what is wrong with the nodes is
// worth more to the caller than a fraction of a round trip.
func (t *tally) hopeless() bool {
	quorum, firm := quorumOf(t.nodes), t.refused-t.sitting
	known := t.granted+firm >= quorum || t.nodes-t.failed < quorum
	return known && t.nodes-firm-t.failed < quorum
}

// available reports that no more than a minority failed or sits out: what was
// refused was refused by somebody, not for want of nodes.
func (t *tally) available() bool { return t.nodes-t.failed-t.sitting >= quorumOf(t.nodes) }

// round is the outcome of one request to all nodes.
type round struct {
	tally
	start   time.Duration // on the client's clock, before the first send
	elapsed time.Duration
	ttl     time.Duration // that was asked for
	results []NodeResult  // one a node
}

// fanout is a round under way. Each node's answer is either counted, if the
// round is not settled yet, or handed to late.
type fanout struct {
	mu      sync.Mutex
	settled bool
	pending nodeSet // nodes that have not answered
	granted nodeSet
	awaited int // how many of them are worth waiting for
	// impatient is set where a round that is not won can be tried again. What
	// is ours already is worth waiting for whoever may have it.
	impatient bool
	tally     tally
	results   []NodeResult
	done      chan struct{}
	seen      func(node int, r NodeResult)
	late      func(node int, r NodeResult)
	ended     func() // called when every node has answered
}

// ask sends req to every node at once and returns as soon as the outcome is
// settled, the node time limit is over, or ctx ends. Every answer is shown to
// seen before it is counted; those that come after the round was settled go to
// late, from another goroutine. Nodes in skip are left out, as if they had not
// answered yet.
//
// The nodes' context is not a child of ctx: a request that was cut off half
// way leaves us not knowing whether it was carried out.
func (c *Client) ask(ctx context.Context, req Request, skip nodeSet, seen, late func(node int, r NodeResult)) round {
	limit := c.opts.NodeTimeout
	if req.TTL > 0 {
		limit = min(limit, req.TTL)
	}
	start := c.clock.Uptime()
	nodeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)

	rd := round{start: start, ttl: req.TTL, tally: tally{nodes: len(c.members)}}
	if len(c.members) == 1 && c.members[0].prompt {
		r := c.members[0].call(nodeCtx, req)
		cancel()
		if seen != nil {
			seen(0, r)
		}
		rd.results = []NodeResult{r}
		rd.count(r)
	} else {
		// The round counts as background work until the last node has
		// answered and what came late is dealt with.
		counted := c.background.start()
		f := &fanout{impatient: req.Op == OpAcquire, seen: seen, late: late, ended: func() {
			cancel()
			if counted {
				c.background.end()
			}
		}}
		c.fanOut(nodeCtx, req, skip, f)
		select {
		case <-f.done:
		case <-nodeCtx.Done():
		case <-ctx.Done():
		}
		f.close(&rd, nodeCtx.Err() == context.DeadlineExceeded)
	}
	rd.elapsed = c.clock.Uptime() - start
	c.roundEnd(ctx, req, &rd)
	return rd
}

func (c *Client) fanOut(ctx context.Context, req Request, skip nodeSet, f *fanout) {
	n := len(c.members)
	f.tally.nodes = n
	f.results = make([]NodeResult, n)
	f.done = make(chan struct{})
	for i, m := range c.members {
		f.results[i] = NodeResult{Node: m.name, Err: errPending}
	}
	// Nodes that did not answer lately are asked all the same, a few calls at
	// a time, but not waited for where the others can settle the round alone.
	now := c.clock.Uptime()
	suspects := c.suspects(now)
	f.pending = allNodes(n) &^ skip
	f.awaited = (f.pending &^ suspects).count()
	for i, m := range c.members {
		if skip.has(i) {
			continue
		}
		suspect := suspects.has(i)
		if suspect && !m.probe(now) {
			f.answer(i, NodeResult{Node: m.name, Err: errSuspect}, false)
			continue
		}
		go func() {
			r := m.call(ctx, req)
			if suspect {
				m.probes.Add(-1)
			}
			f.answer(i, r, !suspect)
		}()
	}
}

// answer takes in one node's answer.
func (f *fanout) answer(i int, r NodeResult, awaited bool) {
	if f.seen != nil {
		f.seen(i, r)
	}
	f.mu.Lock()
	late := f.settled
	if late && f.late != nil {
		f.late(i, r)
	}
	f.pending &^= 1 << i
	last := f.pending == 0
	if !late {
		if r.Err == nil && r.Reply.Status == Granted {
			if r = once(f.results, f.granted, r); r.Err == nil {
				f.granted |= 1 << i
			}
		}
		f.results[i] = r
		f.tally.count(r)
		if awaited {
			f.awaited--
		}
		// Suspects are done without only where the others were enough to say
		// yes or no.
		enough := f.impatient && f.awaited <= 0 && f.tally.granted+f.tally.refused >= quorumOf(f.tally.nodes)
		if f.tally.won() || f.tally.hopeless() || enough || last {
			f.settled = true
			close(f.done)
		}
	}
	f.mu.Unlock()
	if last {
		f.ended()
	}
}

// once refuses the grant of a server that has granted under another address
// among the given nodes: it must not be counted twice.
func once(results []NodeResult, granted nodeSet, r NodeResult) NodeResult {
	if r.Reply.Server == "" {
		return r
	}
	for i, other := range results {
		if granted.has(i) && other.Reply.Server == r.Reply.Server {
			r.Err = &ConfigError{Field: "nodes", Value: r.Node, Bound: "another server than " + other.Node + ", which it is now"}
		}
	}
	return r
}

// close ends the taking in of answers and copies what has come into rd.
func (f *fanout) close(rd *round, timedOut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settled = true
	rd.tally = f.tally
	rd.results = f.results
	for i := range rd.results {
		if timedOut && rd.results[i].Err == errPending {
			// The goroutine that asks is left to itself: not every driver
			// returns when its context ends.
			rd.results[i].Err = ErrNodeTimeout
			rd.failed++
		}
	}
}

func (c *Client) roundEnd(ctx context.Context, req Request, rd *round) {
	if o, ok := c.opts.Observer.(RoundObserver); ok {
		end := RoundEnd{
			Op: req.Op, Name: req.Name, Won: rd.won(),
			Granted: rd.granted, Refused: rd.refused, Failed: rd.failed, Elapsed: rd.elapsed,
		}
		if !end.Won {
			end.Err = rd.quorumError(req)
		}
		o.RoundEnd(ctx, end)
	}
}

// quorumError describes a round that found no quorum.
func (rd *round) quorumError(req Request) *QuorumError {
	return &QuorumError{
		Op: req.Op, Name: req.Name, Need: quorumOf(rd.nodes),
		Elapsed: rd.elapsed, Late: rd.won(), Nodes: rd.results,
	}
}
