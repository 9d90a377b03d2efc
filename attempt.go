package redlatch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// attempt is one caller's asking for one lock, under one value after another.
type attempt struct {
	c        *Client
	name     string
	asked    LockOptions // as the caller gave them
	opts     LockOptions
	caller   context.Context
	observed context.Context // what an observer made of it
	began    time.Duration
	first    protocol.EventKind // with which it begins
	deadline bool               // the caller's context has one
	line     *line              // the local queue in which we are first; nil if in none
	marked   atomic.Int64       // how many times a node had been marked when we asked

	mu        *sync.Mutex
	claim     *claim // the one that is asked for now
	failure   error  // why the last round gave no lease
	bad       error  // why the nodes' parameters do not allow what was asked for
	lease     *Lease
	done      bool
	cancelled bool
	armed     time.Duration // when the caller's timer fires; 0 for never
	reports   []func()      // for the observer
	changed   chan struct{} // done is set, or the timer is to fire earlier
}

// newAttempt returns the attempt of a caller that has just come.
func (c *Client) newAttempt(ctx context.Context, name string, opts LockOptions) (*attempt, error) {
	key, err := c.key(name)
	if err != nil {
		return nil, err
	}
	a := &attempt{c: c, name: name, asked: opts, caller: ctx, observed: ctx, began: c.clock.Uptime(), first: protocol.Begin, mu: new(sync.Mutex), changed: make(chan struct{}, 1)}
	_, a.deadline = ctx.Deadline()
	cfg, marker, err := c.configure(a)
	if err != nil {
		return nil, err
	}
	a.claim = &claim{c: c, name: name, key: key, marker: marker, ctx: context.WithoutCancel(ctx), mu: a.mu,
		core: protocol.NewClaim(&view{c, a.began}, cfg, c.newValue()), attempt: a}
	return a, nil
}

// configure returns what a claim must know, by the cluster parameters as they
// are now.
func (c *Client) configure(a *attempt) (protocol.Config, *node.Guard, error) {
	b := c.guard.bounds()
	opts, err := a.asked.withDefaults(c.opts, b.MaxTTL)
	if err != nil {
		return protocol.Config{}, nil, err
	}
	a.opts = opts
	cfg, marker := c.config(opts, b)
	cfg.Until, cfg.Unbounded = a.until(), a.unbounded()
	return cfg, marker, nil
}

// config returns the configuration of a claim but for its key and its bounds.
func (c *Client) config(opts LockOptions, b *node.Guard) (protocol.Config, *node.Guard) {
	cfg := protocol.Config{
		Nodes: len(c.members), TTL: opts.TTL, Window: b.Window, Tokens: !c.opts.NoToken,
		Guarded: c.guard.on, Patience: c.patience(), RetryDelay: c.opts.RetryDelay, Tries: opts.Tries,
		KeepAlive: !opts.NoKeepAlive, MaxHold: opts.MaxHold,
		Limit: c.limit(node.Request{TTL: opts.TTL}),
	}
	if !c.guard.compares {
		b = nil
	}
	return cfg, b
}

// run asks until the lock is had, the caller's context ends, or its bounds are
// reached.
func (a *attempt) run(ctx context.Context) (*Lease, error) {
	a.caller = ctx
	where := a.c.placeFor(ctx)
	a.claim.handle(a.first, where)
	a.drive(ctx, where)
	closed := a.c.isClosed()
	a.mu.Lock()
	lease, failure := a.lease, a.failure
	a.mu.Unlock()
	switch {
	case lease != nil && (ctx.Err() != nil || closed):
		// Nobody is there to have it.
		lease.Release(context.WithoutCancel(ctx))
	case lease != nil:
		return lease, nil
	}
	switch {
	case a.first == protocol.Attach && errors.Is(failure, ErrLost):
		return nil, failure // that the lock is lost is worth more than that the context ended
	case ctx.Err() != nil:
		return nil, endedError(ctx, failure)
	case closed:
		return nil, ErrClosed
	}
	return nil, failure
}

// drive keeps the claim's time until the attempt is done.
func (a *attempt) drive(ctx context.Context, where place) {
	var timer *time.Timer
	var fired <-chan time.Time
	ended, closing := ctx.Done(), a.c.background.closing
	for {
		a.report()
		a.mu.Lock()
		if a.done && len(a.reports) == 0 {
			a.mu.Unlock()
			if timer != nil {
				timer.Stop()
			}
			return
		}
		cl, at := a.claim, a.claim.core.Timer()
		a.armed = at
		a.mu.Unlock()
		if at != 0 {
			d := at - a.c.clock.Uptime()
			if timer == nil {
				timer = time.NewTimer(d)
				fired = timer.C
			} else {
				timer.Reset(d)
			}
		}
		select {
		case <-a.changed:
		case <-fired:
			cl.handle(protocol.Timer, where)
		case <-ended:
			ended = nil
			a.cancel()
		case <-closing:
			closing = nil
			a.cancel()
		}
	}
}

// report notifies the caller's observer.
func (a *attempt) report() {
	a.mu.Lock()
	reports := a.reports
	a.reports = nil
	a.mu.Unlock()
	for _, f := range reports {
		f()
	}
}

// cancel ends the asking, whichever claim is asked for by now.
func (a *attempt) cancel() {
	a.mu.Lock()
	a.cancelled = true // a successor in the making is cancelled, too
	cl := a.claim
	a.mu.Unlock()
	cl.handle(protocol.Cancel, elsewhere)
}

// finish has the caller return. The mutex is held.
func (a *attempt) finish() {
	a.done = true
	a.signal()
}

// moved has the caller's timer fire earlier, if it must. The mutex is held.
func (a *attempt) moved(to time.Duration) {
	if to != 0 && (a.armed == 0 || to < a.armed) {
		a.signal()
	}
}

func (a *attempt) signal() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// rounds returns how many times the nodes were asked.
func (a *attempt) rounds() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.claim.core.Rounds()
}

// until is when the wait is over; 0 for never.
func (a *attempt) until() time.Duration {
	if a.opts.Wait == 0 {
		return 0
	}
	return a.began + a.opts.Wait
}

// unbounded reports that the caller set no bound to its wait.
func (a *attempt) unbounded() bool { return a.opts.Wait == 0 && a.opts.Tries == 0 && !a.deadline }
