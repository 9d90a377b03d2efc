package runner

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// queues are the local queues. What happens in one is for protocol.Line to say.
type queues struct {
	mu    sync.Mutex
	byKey map[queueKey]*queue
}

// queueKey is what the callers in a queue have in common.
type queueKey struct{ key, kind string }

// queue is a local queue.
type queue struct {
	key    queueKey
	line   protocol.Line
	holder *Claim                 // whose lease those behind wait for, or waited for last
	timer  *time.Timer            // nil until it is needed
	out    [2]protocol.LineEffect // room for effects
}

// leave lets the next caller in the local queue ask.
func (a *Attempt) leave() {
	if q := a.queue; q != nil {
		qs := &a.c.queues
		qs.mu.Lock()
		defer qs.mu.Unlock()
		qs.do(a.c, q, q.line.Left(q.out[:0]))
	}
}

// enter returns when the caller may ask, or has the lock. It then has the queue
// that it has to leave afterwards, if there is one. It returns false if the caller's
// context ended before that, or the client is closing.
func (a *Attempt) enter(ctx context.Context) bool {
	if a.want.NoWait {
		return true // it does not queue behind others
	}
	c, qs, key := a.c, &a.c.queues, queueKey{a.want.Key, a.want.Share.Kind()}
	qs.mu.Lock()
	q := qs.byKey[key]
	if q == nil {
		if qs.byKey == nil {
			qs.byKey = map[queueKey]*queue{}
		}
		q = &queue{key: key}
		qs.byKey[key] = q
	}
	a.waiter = protocol.Waiter{Came: a.began, Ticket: a.arrival.Ticket, Config: &a.want.Config, Caller: a}
	out := q.line.Come(&a.waiter, q.out[:0])
	if len(out) > 0 && out[0].Waiter == &a.waiter {
		if out[0].Kind == protocol.LetIn {
			a.queue = q
		}
		qs.mu.Unlock()
		return true
	}
	p := c.newParker()
	defer c.reuse(p)
	a.turn = p
	holder, waiters := q.holder, qs.do(c, q, out)
	qs.mu.Unlock()
	if waiters > 0 {
		holder.tellWaiters(waiters, false)
	}

	var over <-chan time.Time
	if until, ok := a.want.Until.Get(); ok {
		p.timer.Reset(until - c.clock.Uptime())
		over = p.timer.C
	}
	ended := false
	select {
	case <-p.signal:
		return true
	case <-over:
	case <-ctx.Done():
		ended = true
	case <-c.background.open.Done():
		ended = true
	}
	qs.mu.Lock()
	left := q.line.GiveUp(&a.waiter)
	qs.mu.Unlock()
	if !left {
		// We were let in at the same moment, or given the lock.
		<-p.signal
		if !ended || a.done {
			return true
		}
		a.leave()
	}
	return !ended
}

// do executes effects, but for a PassTo: PassOn does that. It returns how many callers the
// lease is to be told of, 0 for nothing to tell. The mutex is held.
func (qs *queues) do(c *Cluster, q *queue, out []protocol.LineEffect) (tell int) {
	for i := range out {
		switch e := &out[i]; e.Kind {
		case protocol.LetIn:
			e.Waiter.Caller.(*Attempt).unpark(q)
		case protocol.AskBeside:
			e.Waiter.Caller.(*Attempt).unpark(nil)
		case protocol.Tell:
			tell = e.Waiters
		case protocol.LookAt:
			if left := e.At - c.clock.Uptime(); q.timer == nil {
				q.timer = time.AfterFunc(left, func() { qs.look(c, q) })
			} else {
				q.timer.Reset(left)
			}
		}
	}
	clear(out)
	if q.line.IsOver() && qs.byKey[q.key] == q {
		delete(qs.byKey, q.key)
	}
	return tell
}

// unpark signals the caller, which returns from enter: it is to ask, for a queue, or got
// the lease.
func (a *Attempt) unpark(q *queue) {
	a.queue = q
	a.turn.signal <- struct{}{}
}

// look looks whether the holder has had the lock for long.
func (qs *queues) look(c *Cluster, q *queue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.do(c, q, q.line.Look(c.clock.Uptime(), q.out[:0]))
}

// note records why the caller that asks has no quorum, if it has none.
func (qs *queues) note(c *Cluster, q *queue, shortage protocol.Shortage) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.do(c, q, q.line.Short(shortage, q.out[:0]))
}
