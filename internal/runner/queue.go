package runner

import (
	"context"
	"slices"
	"sync"
	"time"
)

// queues is the local queues: the callers of one client that want the same name,
// in order. One asks the nodes, the others wait behind it, and cost no node
// anything. The one that asks does so with the ticket of its arrival, so callers
// in other processes are neither overtaken nor kept waiting by it.
type queues struct {
	mu     sync.Mutex
	byName map[string]*queue
}

// queue is the callers behind the one that asks, in the order of their arrival.
type queue struct {
	behind []*waiter
	outage bool // the one that asks finds too few nodes
}

// waiter is one caller in a queue.
type waiter struct {
	a *Attempt
	// turn is sent the queue when it is our turn to ask, and nil if we are to ask
	// beside it.
	turn chan *queue
}

// Enter returns when it is the caller's turn to ask. It reports false if the
// caller's context ended before that, or the client is closing. Leave must follow
// when the asking is over.
func (a *Attempt) Enter(ctx context.Context) bool {
	if a.terms.Tries != 0 {
		return true // it does not wait for others
	}
	var ok bool
	a.queue, ok = a.c.queues.enter(ctx, a)
	return ok
}

// Leave lets the next caller in the local queue ask.
func (a *Attempt) Leave() { a.c.queues.leave(a.claim.key, a.queue) }

// enter returns when it is the caller's turn to ask, with the queue that it is to
// leave when that has come to an end. There is none if the caller is to ask
// beside it: because its wait is over, and it is to learn who has the lock; or
// because there is an outage, for which it has a patience of its own.
func (qs *queues) enter(ctx context.Context, a *Attempt) (*queue, bool) {
	c, key := a.c, a.claim.key
	qs.mu.Lock()
	q := qs.byName[key]
	if q == nil {
		if qs.byName == nil {
			qs.byName = map[string]*queue{}
		}
		q = &queue{}
		qs.byName[key] = q
		qs.mu.Unlock()
		return q, true
	}
	if q.outage && a.unbounded() {
		qs.mu.Unlock()
		return nil, true
	}
	me := &waiter{a: a, turn: make(chan *queue, 1)}
	q.behind = append(q.behind, me)
	qs.mu.Unlock()

	var over <-chan time.Time
	if until := a.until(); until > 0 {
		timer := time.NewTimer(until - c.clock.Uptime())
		defer timer.Stop()
		over = timer.C
	}
	ended := false
	select {
	case mine := <-me.turn:
		return mine, true
	case <-over:
	case <-ctx.Done():
		ended = true
	case <-c.background.closing:
		ended = true
	}
	if !qs.giveUp(q, me) {
		// Our turn came in the same moment.
		mine := <-me.turn
		if !ended {
			return mine, true
		}
		qs.leave(key, mine)
	}
	return nil, !ended
}

// giveUp takes a caller out of the queue. It reports false if its turn has come.
func (qs *queues) giveUp(q *queue, me *waiter) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	i := slices.Index(q.behind, me)
	if i >= 0 {
		q.behind = slices.Delete(q.behind, i, i+1)
	}
	return i >= 0
}

// leave lets the next one ask.
func (qs *queues) leave(key string, q *queue) {
	if q == nil {
		return
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if len(q.behind) == 0 {
		delete(qs.byName, key)
		return
	}
	q.behind[0].turn <- q
	q.behind = q.behind[1:]
}

// note says whether the one that asks finds too few nodes. Those behind it who
// set no bound then ask beside it, each with its own patience; the others wait
// as it does.
func (qs *queues) note(q *queue, outage bool) {
	if q == nil {
		return
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q.outage = outage
	if !outage {
		return
	}
	q.behind = slices.DeleteFunc(q.behind, func(w *waiter) bool {
		if w.a.unbounded() {
			w.turn <- nil
		}
		return w.a.unbounded()
	})
}
