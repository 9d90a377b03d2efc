package runner

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
)

// queues are the local queues. A local queue has the callers of one client that
// want the same kind of share of a name, in order. One asks the nodes. The
// others wait behind it and cost the nodes nothing: a node would give them the
// same answer. The one that asks uses the ticket of its arrival, so it neither
// overtakes callers in other processes, or of another kind, nor delays them.
type queues struct {
	mu    sync.Mutex
	byKey map[queueKey]*queue
}

// queueKey is what the callers in a queue have in common.
type queueKey struct{ name, kind string }

// queue has the callers behind the one that asks or holds the lock, in the order
// of their arrival.
type queue struct {
	key    queueKey
	behind []*Attempt
	asks   bool // one of them asks the nodes
	// holder is the lease of a caller of this queue, which may be passed on to the
	// first behind it: see pass.go.
	holder holder
	// shortage is why the last round of the one that asks had no quorum.
	shortage protocol.Shortage
}

// asksBeside reports whether a caller does not wait behind the one that asks.
func (q *queue) asksBeside(a *Attempt) bool { return q.shortage.AsksBeside(a.unbounded()) }

// Enter returns when the caller may ask. It returns false if the caller's
// context ended before that, or the client is closing. Leave must follow when
// the caller has finished asking.
func (a *Attempt) Enter(ctx context.Context) bool {
	if a.terms.NoWait {
		return true // it does not queue behind others
	}
	return a.c.queues.enter(ctx, a)
}

// Leave lets the next caller in the local queue ask.
func (a *Attempt) Leave() { a.c.queues.leave(a.queue) }

// enter returns when the caller may ask. It then has the queue that it has to
// leave afterwards. It has none if it may ask beside it: because its wait is over
// and it asks once more to learn who holds the lock, or because there is an
// outage, for which each caller has its own limit; and if it has the lock.
func (qs *queues) enter(ctx context.Context, a *Attempt) bool {
	c, key := a.c, queueKey{a.key, a.terms.Share.Kind()}
	qs.mu.Lock()
	q := qs.byKey[key]
	if q == nil {
		if qs.byKey == nil {
			qs.byKey = map[queueKey]*queue{}
		}
		q = &queue{key: key, asks: true}
		qs.byKey[key], a.queue = q, q
		qs.mu.Unlock()
		return true
	}
	if q.asksBeside(a) {
		qs.mu.Unlock()
		return true
	}
	p := c.newParker()
	defer c.reuse(p)
	a.turn = p
	q.behind = append(q.behind, a)
	if !q.asks && !q.holder.claim.passesTo(a) {
		qs.ask(q) // the first in the queue: callers that came before stay before us
	}
	held, waiters := qs.watch(c, q), len(q.behind)
	if held != nil && q.holder.notified {
		held = nil // it asks for more tokens when it is passed on
	}
	q.holder.notified = true
	qs.mu.Unlock()
	if held != nil {
		held.tellWaiters(waiters, false)
	}

	var over <-chan time.Time
	if until, ok := a.until().Get(); ok {
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
	case <-c.background.closing:
		ended = true
	}
	if !qs.giveUp(q, a) {
		// We were let in at the same moment, or given the lock.
		<-p.signal
		if !ended || a.done {
			return true
		}
		qs.leave(a.queue)
	}
	return !ended
}

// giveUp removes a caller from the queue. It returns false if the caller was
// let in before.
func (qs *queues) giveUp(q *queue, a *Attempt) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	i := slices.Index(q.behind, a)
	if i >= 0 {
		q.behind = slices.Delete(q.behind, i, i+1)
	}
	return i >= 0
}

// leave lets the next caller ask.
func (qs *queues) leave(q *queue) {
	if q == nil {
		return
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q.asks = false
	if !qs.ask(q) && q.holder.claim == nil {
		delete(qs.byKey, q.key)
	}
}

// ask lets the next caller ask, if there is one and nobody asks. The mutex is
// held.
func (qs *queues) ask(q *queue) bool {
	if !q.asks && len(q.behind) > 0 {
		q.asks = true
		q.pop().enters(q)
	}
	return q.asks
}

// enters has the caller return from enter.
func (a *Attempt) enters(q *queue) {
	a.queue = q
	a.turn.signal <- struct{}{}
}

// pop removes the first caller behind.
func (q *queue) pop() *Attempt {
	a := q.behind[0]
	q.behind[0] = nil
	q.behind = q.behind[1:]
	return a
}

// note records why the caller that asks has no quorum, if it has none. Those
// behind it that must not wait as it does then ask beside it.
func (qs *queues) note(q *queue, shortage protocol.Shortage) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q.shortage = shortage
	q.behind = slices.DeleteFunc(q.behind, func(a *Attempt) bool {
		beside := q.asksBeside(a)
		if beside {
			a.enters(nil)
		}
		return beside
	})
}
