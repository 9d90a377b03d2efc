package runner

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// This file passes a lease on to the next caller in its local queue. Whether it
// may be is for protocol to say.

// holder is a lease of a caller of a queue.
type holder struct {
	claim *Claim        // nil for none
	since time.Duration // when that caller got it
	// patience is how long the callers behind it wait for it before one of them
	// asks the nodes, and timer ends that.
	patience time.Duration
	timer    *time.Timer
	armed    bool
	notified bool // that callers wait
	// elsewhere says that others waited elsewhere when tokens were last reserved.
	elsewhere bool
}

// relay is the local queue in which a lease may be passed on. settled receives the
// end of an extension, if a release waits for it.
type relay struct {
	line    *queue
	settled chan struct{}
}

func (r *relay) signal() {
	select {
	case r.settled <- struct{}{}:
	default:
	}
}

// leastPatience is the shortest patience. Until it is over nobody asks, so that a
// lock which is held for a moment is not asked for in vain.
const leastPatience = 20 * time.Millisecond

// waiter is a caller that waits in the local queue, as protocol sees it. It has
// not asked yet.
func (a *Attempt) waiter() protocol.Waiter {
	return protocol.Waiter{Came: a.began, Ticket: a.arrival.Ticket, Config: &a.terms.Config}
}

// passesTo reports whether the lease is of the kind that a caller asks for. What
// it looks at does not change.
func (cl *Claim) passesTo(a *Attempt) bool {
	return cl.core.Config().PassesTo(&a.terms.Config)
}

// holdLine has the callers behind the one that won wait for its lease, if there
// are any and it may be passed on. The mutex is held.
func (cl *Claim) holdLine() {
	c, q := cl.c, cl.attempt.queue
	if q == nil || c.cfg.NoHandOver || !cl.core.CanPass() {
		return
	}
	round, _ := cl.core.Round()
	c.queues.mu.Lock()
	defer c.queues.mu.Unlock()
	if len(q.behind) == 0 {
		return // a lease that nobody waits for costs nothing more
	}
	cl.relay, cl.attempt.queue = &relay{line: q}, nil
	q.asks = false
	q.holder.claim, q.holder.since, q.holder.notified = cl, c.clock.Uptime(), false
	q.holder.patience = max(leastPatience, 4*round.Elapsed())
}

// serveLine does for the local queue what follows from effects that were
// executed: the release, if there was one, has been sent. wants says that the
// claim wants to know who waits, and elsewhere that others wait elsewhere.
func (cl *Claim) serveLine(out []protocol.Effect, wants, elsewhere bool) {
	qs := &cl.c.queues
	for i := range out {
		switch out[i].Kind {
		case protocol.Won:
			wants = true
		case protocol.Extended:
			qs.extended(cl, elsewhere)
		case protocol.NotExtended:
			qs.outage(cl)
		case protocol.Ended:
			if !cl.pauses() {
				qs.ended(cl)
			}
		case protocol.Freed:
			qs.ended(cl)
		}
	}
	if wants {
		cl.askReserve(false)
	}
}

// askReserve tells the lease how many callers wait for it, so that it asks the
// nodes for their tokens; now, even if some are left.
func (cl *Claim) askReserve(now bool) {
	if waiters := cl.c.queues.waiting(cl); waiters > 0 {
		cl.tellWaiters(waiters, now)
	}
}

// pauses reports that the next caller in the local queue asks when the release is
// over, and not as soon as it was sent: the lease was passed on for long, and
// clients that are in no queue need a moment in which the lock is free.
func (cl *Claim) pauses() bool {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	return cl.core.Cause() == protocol.WasReleased && cl.core.PassedForLong(&view{cl.c, cl.c.clock.Uptime(), 0})
}

// waiting returns how many callers wait behind a claim that has won.
func (qs *queues) waiting(cl *Claim) int {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := cl.relay.line
	if q.holder.claim != cl {
		return 0
	}
	qs.watch(cl.c, q)
	q.holder.notified = len(q.behind) > 0
	return len(q.behind)
}

// extended records whether others wait elsewhere.
func (qs *queues) extended(cl *Claim, elsewhere bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	cl.relay.line.holder.elsewhere = elsewhere
}

// outage has a caller ask the nodes: they did not extend the lease.
func (qs *queues) outage(cl *Claim) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := cl.relay.line; q.holder.claim == cl {
		qs.ask(q)
	}
}

// ended lets the next caller ask after the end of a lease.
func (qs *queues) ended(cl *Claim) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := cl.relay.line
	if q.holder.claim != cl {
		return
	}
	q.holder.claim = nil
	if q.holder.armed {
		q.holder.armed = !q.holder.timer.Stop()
	}
	if !qs.ask(q) {
		delete(qs.byKey, q.key)
	}
}

// watch has a caller ask once the holder has had the lock for long, if callers
// wait for it. It returns the holder, if it is to know of them. The mutex is held.
func (qs *queues) watch(c *Cluster, q *queue) *Claim {
	h := &q.holder
	if h.claim == nil || q.asks || len(q.behind) == 0 {
		return nil
	}
	if !h.armed {
		h.armed = true
		if left := h.patience - (c.clock.Uptime() - h.since); h.timer == nil {
			h.timer = time.AfterFunc(left, func() { qs.look(c, q) })
		} else {
			h.timer.Reset(left)
		}
	}
	return h.claim
}

// look lets a caller ask if the holder has had the lock for long.
func (qs *queues) look(c *Cluster, q *queue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	h := &q.holder
	h.armed = false
	if h.claim == nil {
		return
	}
	if c.clock.Uptime()-h.since >= h.patience {
		qs.ask(q)
		return
	}
	qs.watch(c, q)
}

// tellWaiters tells the lease how many callers wait for it in its local queue.
// now asks for their tokens even if some are left.
func (cl *Claim) tellWaiters(n int, now bool) {
	s := steps.Get().(*step)
	s.event.Kind, s.event.Waiters, s.event.Changed = protocol.LocalWaiters, n, now
	cl.step(s, ours)
}

// PassOn passes the lease on to the next caller in the local queue, and reports
// whether it did. The claim goes on, with all its requests in flight: only its
// owner is another. The lease has ended, and its context is done, before the next
// caller returns with its own. Its observer may be notified after that.
func (cl *Claim) PassOn(by Owner) bool {
	c := cl.c
	cl.mu.Lock()
	if cl.relay == nil || cl.owner != by || cl.freed != nil || c.Closing() {
		cl.mu.Unlock()
		return false
	}
	s := steps.Get().(*step)
	s.view = view{c, c.clock.Uptime(), 0}
	a, waiters := c.queues.next(cl, &s.view)
	if a == nil {
		cl.mu.Unlock()
		s.reuse()
		return false
	}
	s.event.Kind, s.event.Waiter, s.event.Waiters = protocol.Pass, a.waiter(), waiters
	s.out = cl.core.Handle(&s.view, &s.event, s.out[:0])
	later := cl.owner.Notify(cl, protocol.Ended)
	cl.core.Inherit(&s.view)
	cl.caller, a.done = a.caller, true
	a.asker.Notify(cl, protocol.Won) // owns the claim from now on
	wants, ages := cl.core.WantsReserve(&s.view), cl.core.Ages(&s.view)
	cl.mu.Unlock()
	s.reuse()
	a.enters(nil)
	if wants || ages {
		cl.askReserve(ages)
	}
	if later != nil {
		later() // an observer may be slow
	}
	return true
}

// next returns the caller to which a lease may be passed on, and how many wait
// behind it, and removes it from the queue; nil for none. The mutex of the claim
// is held.
func (qs *queues) next(cl *Claim, v *view) (a *Attempt, waiters int) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := cl.relay.line
	if !q.mayPass(cl) || !cl.core.MayPass(v, q.behind[0].waiter()) {
		return nil, 0
	}
	a = q.pop()
	q.holder.since, q.holder.notified = v.now, len(q.behind) > 0
	return a, len(q.behind)
}

// mayPass reports whether there is a first caller behind a lease, to which it may
// be passed on: nobody asks the nodes meanwhile.
func (q *queue) mayPass(cl *Claim) bool {
	return q.holder.claim == cl && !q.asks && len(q.behind) > 0
}

// AwaitPass waits for an extension that reserves a token for the next caller in
// the local queue, if the lease may not be passed on to it yet. If none is in
// flight, it is sent, unless others wait elsewhere: the lock is then theirs first.
func (cl *Claim) AwaitPass(ctx context.Context, by Owner) {
	c := cl.c
	cl.mu.Lock()
	if cl.relay == nil || cl.owner != by || cl.relay.settled != nil || cl.freed != nil || c.Closing() {
		cl.mu.Unlock()
		return
	}
	r, v := cl.relay, &view{c, c.clock.Uptime(), 0}
	q := r.line
	inFlight, could := false, false
	c.queues.mu.Lock()
	waits := !q.holder.elsewhere && q.mayPass(cl)
	if waits {
		w := q.behind[0].waiter()
		inFlight, could = cl.core.MayPassSoon(v, w)
		waits = (inFlight || could) && !cl.core.MayPass(v, w)
	}
	patience, waiters := q.holder.patience, len(q.behind)
	c.queues.mu.Unlock()
	if !waits {
		cl.mu.Unlock()
		return
	}
	p := c.newParker()
	r.settled = p.signal
	cl.mu.Unlock()
	if !inFlight {
		cl.tellWaiters(waiters, true)
	}
	p.timer.Reset(patience)
	select {
	case <-p.signal:
	case <-p.timer.C:
	case <-ctx.Done():
	case <-c.background.closing:
	}
	cl.mu.Lock()
	r.settled = nil
	cl.mu.Unlock()
	c.reuse(p)
}
