package runner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// Want is what a caller asks for, ready for its claims.
type Want struct {
	Key        string        // of the lock
	Parameters *node.Guard   // the cluster parameters that allow the rest
	Wait       time.Duration // 0 for no limit
	protocol.Config
}

// Asker is the owner of a claim that is not held yet.
type Asker interface {
	Owner
	// Learned returns what the caller wants, now that the client has learned other
	// cluster parameters; or an error if they do not allow it. The mutex is held.
	Learned(key string, p *node.Guard) (Want, error)
}

// Attempt is one caller's request for one lock. It waits in the local queue, and then
// has claims, under one value after another. Or it gets the claim of another caller,
// which passes its lease on.
type Attempt struct {
	c       *Cluster
	asker   Asker
	want    Want
	caller  context.Context
	began   time.Duration
	arrival protocol.Arrival
	first   protocol.EventKind // the event with which it begins
	marked  atomic.Int64       // how many times a node had been marked when we asked

	// turn is what it waits on in a local queue. queue is the one for which
	// it asks, nil otherwise; it is set before turn is signalled.
	turn   *parker
	queue  *queue
	waiter protocol.Waiter // it, as the line sees it

	mu        *sync.Mutex // nil before the first claim
	claim     *Claim      // the claim that asks now; nil before Run, or if the lock was passed on to it
	done      bool
	cancelled bool
	armed     protocol.When // when the caller's timer fires
	reports   []func()      // for the caller's goroutine
	changed   chan struct{} // done is set, or the timer is to fire earlier; nil if Run has not begun or is over
}

// Begin makes a the attempt of a caller that has just arrived.
func (c *Cluster) Begin(ctx context.Context, a *Attempt, want Want, asker Asker) {
	a.c, a.asker, a.first, a.caller, a.began = c, asker, protocol.Begin, ctx, c.clock.Uptime()
	a.setWant(want)
	s := steps.Get().(*step)
	s.view = view{c: c, now: a.began}
	a.arrival = protocol.Arrive(&s.view, &a.want.Config)
	steps.Put(s)
}

// Attach makes a the attempt to resume a claim that another process acquired.
func (c *Cluster) Attach(ctx context.Context, a *Attempt, want Want, value string, token node.Token, asker Asker) {
	want.NoWait = true
	a.c, a.asker, a.first, a.caller, a.began = c, asker, protocol.Attach, ctx, c.clock.Uptime()
	a.setWant(want)
	a.newClaim(protocol.HeldElsewhere(a.want.Config, value, token))
}

// HeldElsewhere returns a claim that another process acquired, to be released.
func (c *Cluster) HeldElsewhere(ctx context.Context, want Want, value string, token node.Token, owner Owner) *Claim {
	c.complete(&want)
	cl := &Claim{c: c, key: want.Key, marker: want.Parameters, caller: ctx, core: protocol.HeldElsewhere(want.Config, value, token), owner: owner, index: -1}
	cl.mu = &cl.own
	return cl
}

// newClaim makes the attempt continue with a new claim.
func (a *Attempt) newClaim(core protocol.Claim) *Claim {
	a.claim = &Claim{c: a.c, key: a.want.Key, marker: a.want.Parameters, caller: a.caller, mu: a.mu, core: core, attempt: a, owner: a.asker, index: -1}
	if a.mu == nil {
		a.mu, a.claim.mu = &a.claim.own, &a.claim.own
	}
	return a.claim
}

// setWant sets what is wanted, with its limits.
func (a *Attempt) setWant(want Want) {
	a.c.complete(&want)
	until, ends := protocol.When{}, protocol.When{}
	if want.Wait > 0 {
		until = protocol.At(a.began + want.Wait)
	}
	if at, limited := a.caller.Deadline(); limited {
		ends = protocol.At(a.c.clock.Uptime() + at.Sub(a.c.clock.Now()))
	}
	want.SetLimits(until, ends)
	a.want = want
}

// complete sets what a claim has to know about the nodes.
func (c *Cluster) complete(w *Want) {
	p, cfg := w.Parameters, &w.Config
	cfg.Nodes, cfg.Window, cfg.Limit, cfg.Patience = len(c.members), p.Window, c.limit(cfg.TTL), c.patience()
	// A node is marked, and its quarantine begins, after the first round.
	cfg.QuarantineWait = p.Quarantine + protocol.OutagePatience
	if !c.guard.compares {
		w.Parameters = nil
	}
}

// Waited returns how long ago the caller arrived.
func (a *Attempt) Waited() time.Duration { return a.c.clock.Uptime() - a.began }

// Run waits in the local queue, and asks, until the caller has the lock, its context
// ends, the client is closed, or a limit is reached. The owner knows which.
func (a *Attempt) Run(ctx context.Context) {
	a.caller = ctx
	if a.enter(ctx) {
		defer a.leave()
		a.ask(ctx)
	}
}

// ask has a claim ask for the lock, unless it was passed on to the caller.
func (a *Attempt) ask(ctx context.Context) {
	if a.done {
		return
	}
	if a.claim == nil {
		a.newClaim(protocol.ClaimOf(a.arrival, a.want.Config, a.c.newValue()))
	}
	p := a.c.newParker()
	a.changed = p.signal // nothing signals before the first event
	a.claim.handleAndRead(a.first, ctx, p)
	ended, closing := ctx.Done(), a.c.background.open.Done()
	for {
		a.mu.Lock()
		p.drain() // it is for what is looked at now
		reports, done, cl, at := a.reports, a.done, a.claim, a.claim.core.Timer()
		a.armed = at
		if p.loan != nil {
			a.mu.Unlock()
			p.read(ctx, a.c, at)
			continue
		}
		a.reports = nil
		if done && len(reports) == 0 {
			a.changed = nil
			a.mu.Unlock()
			a.c.reuse(p)
			return
		}
		a.mu.Unlock()
		for _, f := range reports {
			f() // notifies the caller's observer
		}
		if done {
			continue
		}
		if at, ok := at.Get(); ok {
			p.timer.Reset(at - a.c.clock.Uptime())
		}
		select {
		case <-p.signal:
		case <-p.timer.C:
			cl.handle(protocol.Timer, ours)
		case <-ended:
			ended = nil
			a.cancel()
		case <-closing:
			closing = nil
			a.cancel()
		}
	}
}

// cancel ends the attempt, whichever claim asks by now.
func (a *Attempt) cancel() {
	a.mu.Lock()
	a.cancelled = true // also cancels a successor that is being made
	cl := a.claim
	a.mu.Unlock()
	cl.handle(protocol.Cancel, ours)
}

// finish makes the caller return. The mutex is held.
func (a *Attempt) finish() {
	a.done = true
	a.signal()
}

func (a *Attempt) signal() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// Rounds returns the number of rounds.
func (a *Attempt) Rounds() int {
	if a.mu == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.claim.core.Rounds()
}
