package runner

import (
	"context"
	"slices"
	"sync"
	"time"
)

// queues are the local queues. A local queue has the callers of one client that
// want the same name, in order. One asks the nodes. The others wait behind it
// and cost the nodes nothing. The one that asks uses the ticket of its arrival,
// so it neither overtakes callers in other processes nor delays them.
type queues struct {
	mu     sync.Mutex
	byName map[string]*queue
}

// queue has the callers behind the one that asks, in the order of their
// arrival.
type queue struct {
	behind []*waiter
	outage bool // the one that asks has no quorum
}

// waiter is one caller in a queue.
type waiter struct {
	a *Attempt
	// turn receives the queue when the caller may ask as its head, and nil if
	// it may ask beside it.
	turn chan *queue
}

// Enter returns when the caller may ask. It returns false if the caller's
// context ended before that, or the client is closing. Leave must follow when
// the caller has finished asking.
func (a *Attempt) Enter(ctx context.Context) bool {
	if a.terms.Tries != 0 {
		return true // it does not queue behind others
	}
	var ok bool
	a.queue, ok = a.c.queues.enter(ctx, a)
	return ok
}

// Leave lets the next caller in the local queue ask.
func (a *Attempt) Leave() { a.c.queues.leave(a.claim.key, a.queue) }

// enter returns when the caller may ask, with the queue that it has to leave
// afterwards. It returns no queue if the caller may ask beside it: because its
// wait is over and it asks once more to learn who holds the lock, or because
// there is an outage, for which each caller has its own limit.
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
		// We were let in at the same moment.
		mine := <-me.turn
		if !ended {
			return mine, true
		}
		qs.leave(key, mine)
	}
	return nil, !ended
}

// giveUp removes a caller from the queue. It returns false if the caller was
// let in before.
func (qs *queues) giveUp(q *queue, me *waiter) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	i := slices.Index(q.behind, me)
	if i >= 0 {
		q.behind = slices.Delete(q.behind, i, i+1)
	}
	return i >= 0
}

// leave lets the next caller ask.
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

// note records whether the caller that asks has no quorum. Those behind it that
// set no limit then ask beside it, each with its own patience. The others wait
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
