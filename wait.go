package redlatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// waiter decides when a caller that was refused asks again.
type waiter struct {
	a     *attempt
	until time.Duration // when the wait is over; 0 for never
	// served is set once a quorum of nodes was there: from then on an outage
	// is waited out.
	served bool
	// rank is our place in line, and since when we have had it.
	rank  int
	since time.Duration
}

func newWaiter(a *attempt, now time.Duration) *waiter {
	w := &waiter{a: a}
	if a.opts.Wait > 0 {
		w.until = now + a.opts.Wait
	}
	if a.opts.Tries != 1 {
		a.req.Wait = true
		a.req.Ticket = a.c.clock.Now().Add(a.c.clockOffset()).UnixMicro()
	}
	return w
}

// next returns how long to wait before the next round, and whether there is to
// be one.
func (w *waiter) next(rd *round, failure error, rounds int, now time.Duration) (time.Duration, bool) {
	w.served = w.served || rd.available()
	switch {
	case errors.Is(failure, ErrConfig):
		return 0, false
	case !w.served && w.a.opts.Tries == 0:
		return 0, false
	case w.a.opts.Tries > 0 && rounds >= w.a.opts.Tries:
		return 0, false
	}
	delay := w.delay(rd, now)
	if w.until > 0 {
		left := w.until - now
		if left <= 0 {
			return 0, false
		}
		// The last round comes when the wait is over, not before.
		delay = min(delay, left)
	}
	return delay, true
}

// A node that keeps a queue is asked again after pollStep for each place before
// us; more rarely the longer the line stands still, so that waiting for a long
// job costs little; and never so rarely that our place would lapse.
const (
	pollStep  = 5 * time.Millisecond
	pollStill = 100 * time.Millisecond
	pollMost  = WaiterLease * 2 / 5
)

// delay is how long to wait after a refused round. In a queue it goes by our
// place: the order is kept there, and asking merely tells us that it is our
// turn. Otherwise it is random, so that contenders do not split the nodes
// among them again and again, and no longer than the lock can be held yet.
func (w *waiter) delay(rd *round, now time.Duration) time.Duration {
	if rank := rd.rank(); rank > 0 {
		if rank != w.rank {
			w.rank, w.since = rank, now
		}
		still := min((now-w.since)/10, pollStill)
		return min(max(time.Duration(rank)*pollStep, still), pollMost)
	}
	most := w.a.c.opts.RetryDelay
	delay := most/5 + rand.N(most-most/5)
	if left, ok := rd.freeIn(); ok {
		// A random part of a step on top: everyone who waits for the same
		// expiry was told the same time.
		delay = min(delay, left+time.Millisecond+rand.N(most/20+time.Millisecond))
	}
	return delay
}

// rank returns our place in line, or 0 if a quorum does not know us.
func (rd *round) rank() int {
	var ranks []int
	for _, r := range rd.results {
		if r.Err == nil && r.Reply.Rank > 0 {
			ranks = append(ranks, r.Reply.Rank)
		}
	}
	if len(ranks) < quorumOf(rd.nodes) {
		return 0
	}
	slices.Sort(ranks)
	return ranks[quorumOf(rd.nodes)-1]
}

// freeIn returns when a quorum of nodes will be free at the latest if nobody
// extends: the quorum-th smallest of the times left.
func (rd *round) freeIn() (time.Duration, bool) {
	var left []time.Duration
	for _, r := range rd.results {
		switch {
		case r.Err != nil:
		case r.Reply.Status == Held || r.Reply.Status == Foreign:
			if r.Reply.Left != NoExpiry {
				left = append(left, r.Reply.Left)
			}
		default:
			left = append(left, 0)
		}
	}
	if len(left) < quorumOf(rd.nodes) {
		return 0, false
	}
	slices.Sort(left)
	d := left[quorumOf(rd.nodes)-1]
	// With a quorum free already it was a split vote, which only chance can
	// settle.
	return d, d > 0
}

// How a wait came to its end.
const (
	waitOver = iota
	waitEnded
	waitClosed
)

// wait waits for d, or until ctx ends or the client is being closed.
func wait(ctx context.Context, d time.Duration, closing <-chan struct{}) int {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return waitOver
	case <-ctx.Done():
		return waitEnded
	case <-closing:
		return waitClosed
	}
}
