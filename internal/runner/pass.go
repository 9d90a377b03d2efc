package runner

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// This file passes a lease on to the next caller in its local queue. Whether it
// may be is for protocol to say.

// relay is the local queue in which a lease may be passed on. settled receives the
// end of an extension, if a release waits for it.
type relay struct {
	queue   *queue
	settled chan struct{}
}

func (r *relay) signal() {
	select {
	case r.settled <- struct{}{}:
	default:
	}
}

// holdLine tells the line that its caller has won: those behind wait for the lease, if
// there are any and it may be passed on. The mutex is held.
func (cl *Claim) holdLine() {
	c, q := cl.c, cl.attempt.queue
	if q == nil || c.cfg.NoHandOver {
		return
	}
	c.queues.mu.Lock()
	defer c.queues.mu.Unlock()
	if q.line.Won(c.clock.Uptime(), &cl.core) {
		q.holder, cl.relay, cl.attempt.queue = cl, &relay{queue: q}, nil
	}
}

// follow has the local queue follow what has happened to the lease. If tokens are to be
// asked for, the lease hears how many callers wait for it; now asks for them even if
// some are left.
func (cl *Claim) follow(news protocol.LineNews, now bool) {
	waiters := cl.inLine(func(l *protocol.Line, out []protocol.LineEffect) []protocol.LineEffect {
		return l.Follow(&cl.core, news, out)
	})
	if waiters > 0 {
		cl.tellWaiters(waiters, now)
	}
}

// inLine says what happens in the claim's local queue. It returns how many callers
// the lease is to be told of.
func (cl *Claim) inLine(happens func(*protocol.Line, []protocol.LineEffect) []protocol.LineEffect) int {
	qs, q := &cl.c.queues, cl.relay.queue
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.do(cl.c, q, happens(&q.line, q.out[:0]))
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
	e := cl.next(&s.view)
	if e.Kind != protocol.PassTo {
		cl.mu.Unlock()
		s.reuse()
		return false
	}
	a := e.Waiter.Caller.(*Attempt)
	s.event.Kind, s.event.Waiter, s.event.Waiters = protocol.Pass, *e.Waiter, e.Waiters
	cl.core.Handle(&s.view, &s.event, &s.ready)
	later := cl.owner.Notify(cl, protocol.Ended)
	cl.core.Inherit(&s.view)
	cl.caller, a.done = a.caller, true
	a.asker.Notify(cl, protocol.Won) // owns the claim from now on
	wants, ages := cl.core.WantsReserve(&s.view), cl.core.Ages(&s.view)
	cl.mu.Unlock()
	s.reuse()
	a.unpark(nil)
	if wants || ages {
		cl.follow(protocol.LineNews{Wants: true}, ages)
	}
	if later != nil {
		later() // an observer may be slow
	}
	return true
}

// next returns what passes the lease on, if it may be. The mutex of the claim is held.
func (cl *Claim) next(v *view) (e protocol.LineEffect) {
	qs, q := &cl.c.queues, cl.relay.queue
	qs.mu.Lock()
	defer qs.mu.Unlock()
	var buf [1]protocol.LineEffect
	for _, e = range q.line.Pass(v, &cl.core, buf[:0]) {
	}
	return e
}

// AwaitPass waits for an extension that reserves a token for the next caller in the
// local queue, if the line asks for that.
func (cl *Claim) AwaitPass(ctx context.Context, by Owner) {
	c := cl.c
	cl.mu.Lock()
	if cl.relay == nil || cl.owner != by || cl.relay.settled != nil || cl.freed != nil || c.Closing() {
		cl.mu.Unlock()
		return
	}
	r, v := cl.relay, &view{c, c.clock.Uptime(), 0}
	var until time.Duration
	waiters := cl.inLine(func(l *protocol.Line, out []protocol.LineEffect) []protocol.LineEffect {
		out = l.Await(v, &cl.core, out)
		for _, e := range out {
			if e.Kind == protocol.AwaitExtension {
				until = e.At
			}
		}
		return out
	})
	if until == 0 {
		cl.mu.Unlock()
		return
	}
	p := c.newParker()
	r.settled = p.signal
	cl.mu.Unlock()
	if waiters > 0 {
		cl.tellWaiters(waiters, true)
	}
	p.timer.Reset(until - v.now)
	select {
	case <-p.signal:
	case <-p.timer.C:
	case <-ctx.Done():
	case <-c.background.open.Done():
	}
	cl.mu.Lock()
	r.settled = nil
	cl.mu.Unlock()
	c.reuse(p)
}
