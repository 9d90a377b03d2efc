package redlatch

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
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
	case r.Reply.Status == node.Granted:
		t.granted++
	default:
		t.refused++
		if r.Reply.Status == node.Quarantined || r.Reply.Status == node.Misconfigured {
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

// lost reports that so many nodes say "not yours" that those which may have had
// the lock are no quorum. Nodes that merely failed to answer decide nothing.
func (t *tally) lost() bool { return t.nodes-t.refused < quorumOf(t.nodes) }

// freed reports, of a release, that the name is free of our key on a quorum of
// nodes: they deleted it, or did not have it.
func (t *tally) freed() bool { return !t.lost() && t.granted+t.refused >= quorumOf(t.nodes) }

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
	op      node.Op
	began   time.Time
	limit   time.Duration // after which the round ends in any case
	// patience is how long nodes are waited for once a quorum has answered, and
	// overdue that a timer runs which ends the round then.
	patience time.Duration
	overdue  bool
	tally    tally
	results  []NodeResult
	done     chan struct{}
	seen     func(i int, r NodeResult)
	late     func(i int, r NodeResult)
	ended    func() // called when every node has answered
}

// ask sends req to every node at once and returns as soon as the outcome is
// settled, the node time limit is over, or ctx ends. Every answer is shown to
// seen before it is counted; those that come after the round was settled go to
// late, from another goroutine. Nodes in skip are left out, as if they had not
// answered yet. The observer is given name, the caller's.
//
// The nodes' context is not a child of ctx: a request that was cut off half
// way leaves us not knowing whether it was carried out.
func (c *Client) ask(ctx context.Context, name string, req node.Request, skip nodeSet, seen, late func(i int, r NodeResult)) round {
	start := c.clock.Uptime()
	limit := c.limit(req)
	nodeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)

	rd := round{start: start, ttl: req.TTL, tally: tally{nodes: len(c.members)}}
	if c.inline(ctx) {
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
		f := &fanout{op: req.Op, began: time.Now(), limit: limit, patience: c.patience(), seen: seen, late: late, ended: func() {
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
	c.roundEnd(ctx, name, req.Op, &rd)
	return rd
}

// inline reports that a node may be called on the caller's goroutine: there is
// but one, it returns by the node time limit, and the caller cannot want to
// leave before that, since its context never ends.
func (c *Client) inline(ctx context.Context) bool {
	return len(c.members) == 1 && c.members[0].prompt && ctx.Done() == nil
}

func (c *Client) fanOut(ctx context.Context, req node.Request, skip nodeSet, f *fanout) {
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
		if r.Err == nil && r.Reply.Status == node.Granted {
			if r = once(f.results, f.granted, r); r.Err == nil {
				f.granted |= 1 << i
			}
		}
		f.results[i] = r
		f.tally.count(r)
		if awaited {
			f.awaited--
		}
		if last || f.decided() {
			f.settled = true
			close(f.done)
		} else if f.op == node.OpAcquire && !f.overdue && f.tally.granted+f.tally.refused >= quorumOf(f.tally.nodes) {
			// A quorum has answered: it is not to wait for nodes that do not
			// answer, be it the first round in which they do not.
			f.overdue = true
			took := time.Since(f.began)
			// Where the node time limit comes as soon, that ends the round, and
			// the nodes have timed out.
			if most := max(f.patience, slowness*took); most < f.limit {
				time.AfterFunc(most-took, f.settle)
			}
		}
	}
	f.mu.Unlock()
	if last {
		f.ended()
	}
}

// decided reports that the answers which are still to come need not be waited
// for.
func (f *fanout) decided() bool {
	t := &f.tally
	if t.won() {
		return true
	}
	// Suspects are done without only where the others were enough to say yes
	// or no.
	enough := f.awaited <= 0 && t.granted+t.refused >= quorumOf(t.nodes)
	switch f.op {
	case node.OpAcquire:
		return enough || t.hopeless()
	case node.OpRelease:
		// That no quorum can grant any more decides nothing: a node without
		// our key is as good as one that deleted it. The answers that are
		// still to come say whether the lock was lost.
		return enough || t.lost() || t.failed >= quorumOf(t.nodes)
	}
	// Suspects are waited for: one of them may hold our key.
	return t.hopeless()
}

// settle ends the round with what has come.
func (f *fanout) settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.settled {
		f.settled = true
		close(f.done)
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

func (c *Client) roundEnd(ctx context.Context, name string, op node.Op, rd *round) {
	if o, ok := c.opts.Observer.(RoundObserver); ok {
		end := RoundEnd{
			Op: op, Name: name, Won: rd.won() || op == node.OpRelease && rd.freed(),
			Granted: rd.granted, Refused: rd.refused, Failed: rd.failed, Elapsed: rd.elapsed,
		}
		if !end.Won {
			end.Err = rd.quorumError(node.Request{Op: op, Name: name})
		}
		o.RoundEnd(ctx, end)
	}
}

// quorumError describes a round that found no quorum.
func (rd *round) quorumError(req node.Request) *QuorumError {
	return &QuorumError{
		Op: req.Op, Name: req.Name, Need: quorumOf(rd.nodes),
		Elapsed: rd.elapsed, Late: rd.won(), Nodes: rd.results,
	}
}
