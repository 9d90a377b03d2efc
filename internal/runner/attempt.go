package runner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// Terms are what a caller asks for: its part of the configuration of a claim.
type Terms struct {
	protocol.Config
	Wait time.Duration // 0 for no limit
}

// Asker is the owner of a claim that is not held yet.
type Asker interface {
	Owner
	// Terms returns what the caller asked for, checked against the longest TTL
	// that the nodes allow; or an error if they do not allow it. It is called
	// again, with the mutex held, when the client learns another such TTL.
	Terms(maxTTL time.Duration) (Terms, error)
}

// Attempt is one caller's request for one lock, under one value after another.
type Attempt struct {
	c        *Cluster
	asker    Asker
	key      string // the name of the lock, prefix included
	terms    Terms  // with the whole configuration of a claim
	marker   *node.Guard
	caller   context.Context
	began    time.Duration
	arrival  protocol.Arrival
	first    protocol.EventKind // the event with which it begins
	deadline bool               // the caller's context has one
	marked   atomic.Int64       // how many times a node had been marked when we asked

	// turn is what it waits on in a local queue. queue is the one whose head it
	// is, nil if it is in none; it is set before turn is signalled.
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
func (c *Cluster) Begin(ctx context.Context, a *Attempt, key string, asker Asker) error {
	_, a.deadline = ctx.Deadline()
	if err := c.begin(ctx, a, key, asker, protocol.Begin); err != nil {
		return err
	}
	s := steps.Get().(*step)
	s.view = view{c: c, now: a.began}
	a.arrival = protocol.Arrive(&s.view, &a.terms.Config)
	steps.Put(s)
	return nil
}

// Attach makes a the attempt to resume a claim that another process acquired.
func (c *Cluster) Attach(ctx context.Context, a *Attempt, key, value string, token node.Token, asker Asker) error {
	a.deadline = true
	if err := c.begin(ctx, a, key, asker, protocol.Attach); err != nil {
		return err
	}
	a.newClaim(protocol.HeldElsewhere(a.terms.Config, value, token))
	return nil
}

func (c *Cluster) begin(ctx context.Context, a *Attempt, key string, asker Asker, first protocol.EventKind) error {
	a.c, a.key, a.asker, a.first, a.caller, a.began = c, key, asker, first, ctx, c.clock.Uptime()
	return a.configure()
}

// HeldElsewhere returns a claim that another process acquired, to be released.
func (c *Cluster) HeldElsewhere(ctx context.Context, key, value string, token node.Token, terms Terms, owner Owner) *Claim {
	cfg, marker := c.config(terms, c.guard.parameters())
	return &Claim{c: c, key: key, marker: marker, caller: ctx, mu: new(sync.Mutex),
		core: protocol.HeldElsewhere(cfg, value, token), owner: owner, index: -1}
}

// newClaim makes the attempt continue with a new claim.
func (a *Attempt) newClaim(core protocol.Claim) *Claim {
	if a.mu == nil {
		a.mu = new(sync.Mutex)
	}
	a.claim = &Claim{c: a.c, key: a.key, marker: a.marker, caller: a.caller, mu: a.mu, core: core, attempt: a, owner: a.asker, index: -1}
	return a.claim
}

// configure sets the configuration of a claim, by the present cluster
// parameters.
func (a *Attempt) configure() error {
	p := a.c.guard.parameters()
	terms, err := a.asker.Terms(p.MaxTTL)
	if err != nil {
		return err
	}
	a.terms = terms
	cfg := &a.terms.Config
	*cfg, a.marker = a.c.config(terms, p)
	cfg.Until, cfg.Unbounded = a.until(), a.unbounded()
	cfg.Ends = a.ends()
	// A node is marked, and its quarantine begins, after the first round.
	cfg.QuarantineWait = p.Quarantine + protocol.OutagePatience
	return nil
}

// config returns the configuration of a claim, without the limits of its wait.
func (c *Cluster) config(terms Terms, p *node.Guard) (protocol.Config, *node.Guard) {
	cfg := terms.Config
	cfg.Nodes, cfg.Window, cfg.Limit = len(c.members), p.Window, c.limit(terms.TTL)
	cfg.Patience, cfg.RetryDelay = c.patience(), c.cfg.RetryDelay
	if !c.guard.compares {
		p = nil
	}
	return cfg, p
}

// Key returns the name of the lock, prefix included.
func (a *Attempt) Key() string { return a.key }

// Observe sends requests with the values of a context.
func (a *Attempt) Observe(ctx context.Context) { a.caller = ctx }

// Waited returns how long ago the caller arrived.
func (a *Attempt) Waited() time.Duration { return a.c.clock.Uptime() - a.began }

// Run asks until the caller has the lock, its context ends, the client is
// closed, or a limit is reached. The owner knows which.
func (a *Attempt) Run(ctx context.Context) {
	if a.done {
		return // the lock was passed on to it
	}
	if a.caller = ctx; a.claim == nil {
		a.newClaim(protocol.ClaimOf(a.arrival, a.terms.Config, a.c.newValue()))
	}
	p := a.c.newParker()
	a.changed = p.signal // nothing signals before the first event
	a.claim.handleAndRead(a.first, ctx, p)
	ended, closing := ctx.Done(), a.c.background.closing
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

// moved makes the caller's timer fire earlier, if necessary. The mutex is held.
func (a *Attempt) moved(to protocol.When) {
	if to.Before(a.armed) {
		a.signal()
	}
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

// until is when the wait ends.
func (a *Attempt) until() protocol.When {
	if a.terms.Wait == 0 {
		return protocol.When{}
	}
	return protocol.At(a.began + a.terms.Wait)
}

// ends is when the caller stops to wait.
func (a *Attempt) ends() protocol.When {
	end, limited := a.caller.Deadline()
	at := protocol.At(a.c.clock.Uptime() + end.Sub(a.c.clock.Now()))
	if limited && !a.until().Before(at) {
		return at
	}
	return a.until()
}

// unbounded reports that the caller set no limit to its wait.
func (a *Attempt) unbounded() bool {
	return a.terms.Wait == 0 && !a.terms.NoWait && !a.deadline
}

// Lock locks the mutex under which the owner is notified, if it may be.
func (a *Attempt) Lock() {
	if a.mu != nil {
		a.mu.Lock()
	}
}

// Unlock unlocks it.
func (a *Attempt) Unlock() {
	if a.mu != nil {
		a.mu.Unlock()
	}
}
