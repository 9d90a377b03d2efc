package redlatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// waiter gets a lock for a caller that waits: it decides when to ask again, and
// takes what the nodes offer meanwhile.
type waiter struct {
	a      *attempt
	line   *line // in which we stand foremost; nil if in none
	began  time.Duration
	came   time.Time     // the same, on the clock by which tickets are taken
	until  time.Duration // when the wait is over; 0 for never
	rounds int
	// unbounded is set if the caller set no bound to its wait.
	unbounded bool
	// outage is since when every round has found too few nodes; 0 if the last
	// one did not.
	outage time.Duration
	// missing is how many rounds that was.
	missing int
	// rank is our place in line, and since when we have had it.
	rank  int
	since time.Duration
	// front is set while we are known to be one of the first two in line.
	front bool
	// split is since when every round has left us with a minority; 0 if the
	// last one did not.
	split time.Duration
	// missed is how often an inbox had been opened when we came.
	missed uint32
	// failure is why the last round gave no lease.
	failure error
}

func newWaiter(ctx context.Context, a *attempt) *waiter {
	w := &waiter{a: a, began: a.c.clock.Uptime(), came: a.c.clock.Now(), missed: a.c.inbox.missed.Load()}
	if a.opts.Wait > 0 {
		w.until = w.began + a.opts.Wait
	}
	_, deadline := ctx.Deadline()
	w.unbounded = a.opts.Wait == 0 && a.opts.Tries == 0 && !deadline
	if a.opts.Tries != 1 && a.c.clockKnown() {
		w.takeTicket()
	}
	return w
}

// takeTicket sets our place in line, by the nodes' clocks: behind all who came
// before us. Before any of them has shown its clock nobody is queued, since a
// wrong ticket would last for the whole wait.
func (w *waiter) takeTicket() {
	w.a.req.Wait = true
	w.a.req.Ticket = w.came.Add(w.a.c.clockOffset()).UnixMicro()
}

// lock asks until it has the lock, ctx ends, or the caller's bounds are reached.
func (w *waiter) lock(ctx context.Context) (*Lease, error) {
	a := w.a
	for {
		w.rounds++
		rd := a.try(ctx)
		if ctx.Err() != nil {
			a.drop()
			return nil, endedError(ctx, w.failure)
		}
		var lease *Lease
		if lease, w.failure = a.settle(&rd); lease != nil {
			a.win()
			return lease, nil
		}
		delay, again := w.next(&rd)
		if !again {
			a.drop()
			return nil, w.failure
		}
		w.report(ctx, &rd)
		a.c.lines.note(w.line, !rd.available())
		switch {
		case !rd.available(): // and so no candidate
		case !a.req.Wait:
			w.takeTicket()
			delay = 0 // only now can we be queued
		case !rd.inLine():
			// What we know of the nodes' clocks has become better by this
			// round, and nobody has our ticket yet.
			w.takeTicket()
		}
		if a.events == nil {
			a.hear(make(chan event, 4*len(a.c.members)+4))
			if w.missed != a.c.inbox.missed.Load() {
				delay = 0
			}
		}
		lease, err := w.pause(ctx, &rd, delay)
		if lease != nil {
			a.win()
			return lease, nil
		}
		if err != nil {
			a.drop()
			return nil, err
		}
	}
}

// report notifies an observer of what we wait for.
func (w *waiter) report(ctx context.Context, rd *round) {
	if o, ok := w.a.c.opts.Observer.(WaitObserver); ok {
		place, _ := rd.rank()
		o.Waiting(ctx, Waiting{Name: w.a.name, Place: place, Waited: w.a.c.clock.Uptime() - w.began, Err: w.failure})
	}
}

// next returns how long to wait before the next round, and whether there is to
// be one.
func (w *waiter) next(rd *round) (time.Duration, bool) {
	now := w.a.c.clock.Uptime()
	if rd.available() {
		w.outage, w.missing = 0, 0
	} else if w.missing++; w.outage == 0 {
		w.outage = max(rd.start, 1)
	}
	until := w.until
	if w.unbounded && w.outage != 0 {
		until = w.outage + OutagePatience
		if until <= now && w.missing < outageRounds {
			until = 0 // the nodes may merely be slow
		}
	}
	switch {
	case errors.Is(w.failure, ErrConfig) && !errors.Is(w.failure, ErrChanging):
		return 0, false // that does not pass by itself
	case w.a.opts.Tries > 0 && w.rounds >= w.a.opts.Tries:
		return 0, false
	}
	delay := w.delay(rd, now)
	if until > 0 {
		left := until - now
		if left <= 0 {
			return 0, false
		}
		// The last round comes when the wait is over, not before.
		delay = min(delay, left)
	}
	return delay, true
}

// In a queue that does not wake, a node is asked again after pollStep for each
// place before us; more rarely the longer the line stands still, so that
// waiting for a long job costs little. In one that does, the first two in line
// ask every pollMost to renew their places, so that one of them sees if the
// other is gone. Those behind look whether anybody before them is left: a node
// does nothing by itself, and if all before us are frozen nobody else would. So
// each of the first lookMany looks about once in lookLeast, and those behind
// them ever more rarely, so that a long line costs little more than a short one.
const (
	pollStep  = 5 * time.Millisecond
	pollStill = 100 * time.Millisecond
	pollMost  = node.WaiterLease * 2 / 5
	lookLeast = node.WaiterLease * 9 / 10
	lookMost  = 20 * time.Second
	lookMany  = 50
)

// delay is how long to wait after a refused round. In a queue it goes by our
// place: the order is kept there. Otherwise it is random, so that contenders
// do not split the nodes among them again and again, and no longer than the
// lock can be held yet.
func (w *waiter) delay(rd *round, now time.Duration) time.Duration {
	rank, wakes := rd.rank()
	if rank != w.rank {
		w.rank, w.since = rank, now
	}
	switch {
	case rank == 0:
		delay := w.random()
		if left, ok := rd.freeIn(); ok {
			// A random part of a step on top: everyone who waits for the same
			// expiry was told the same time.
			delay = min(delay, left+time.Millisecond+w.a.c.chance.below(w.a.c.opts.RetryDelay/20+time.Millisecond))
		}
		return delay
	case !wakes:
		still := min((now-w.since)/10, pollStill)
		return min(max(time.Duration(rank)*pollStep, still), pollMost)
	}
	delay := pollMost
	w.front = rank <= 2
	if !w.front {
		delay = min(lookLeast*time.Duration(max(rank, lookMany))/lookMany, lookMost)
		delay -= w.a.c.chance.below(delay / 4) // not all at once
	}
	if rank == 1 && rd.plain() {
		delay = min(delay, w.random()) // its release wakes nobody
	}
	if left, ok := rd.freeIn(); ok && rank == 1 {
		delay = min(delay, left+time.Millisecond)
	}
	for _, r := range rd.results {
		if d, ok := w.lookIn(r); ok {
			delay = min(delay, d)
		}
	}
	return delay
}

// lookIn returns when we are to look whether those for whom a node keeps a free
// lock have come for it, if nobody else may.
func (w *waiter) lookIn(r NodeResult) (time.Duration, bool) {
	if r.Err != nil || r.Reply.Status != node.Reserved || r.Reply.Left <= 0 {
		return 0, false
	}
	return r.Reply.Left + time.Millisecond + w.a.c.chance.below(10*time.Millisecond), true
}

// random is the delay by which strangers avoid each other.
func (w *waiter) random() time.Duration {
	most := w.a.c.opts.RetryDelay
	return most/5 + w.a.c.chance.below(most-most/5)
}

// rank returns our place in line, or 0 if a quorum does not know us; and
// whether a quorum will tell us when it is our turn.
func (rd *round) rank() (rank int, wakes bool) {
	var buf [MaxNodes]int
	ranks, telling := buf[:0], 0
	for _, r := range rd.results {
		if r.Err == nil && r.Reply.Rank > 0 {
			ranks = append(ranks, r.Reply.Rank)
			if r.Reply.Wakes {
				telling++
			}
		}
	}
	if len(ranks) < quorumOf(rd.nodes) {
		return 0, false
	}
	slices.Sort(ranks)
	return ranks[quorumOf(rd.nodes)-1], telling >= quorumOf(rd.nodes)
}

// inLine reports whether a node may have queued us.
func (rd *round) inLine() bool {
	for _, r := range rd.results {
		if r.Reply.Rank > 0 || r.Err != nil && !errors.Is(r.Err, ErrUnsent) {
			return true
		}
	}
	return false
}

// plain reports whether somebody has the lock whose release wakes nobody.
func (rd *round) plain() bool {
	for _, r := range rd.results {
		if r.Err != nil {
			continue
		}
		if r.Reply.Status == node.Foreign {
			return true
		}
		if r.Reply.Status == node.Held {
			if _, ours := ownerOf(r.Reply.Value); !ours {
				return true
			}
		}
	}
	return false
}

// freeIn returns when a quorum of nodes will be free at the latest if nobody
// extends: the quorum-th smallest of the times left.
func (rd *round) freeIn() (time.Duration, bool) {
	var left []time.Duration
	for _, r := range rd.results {
		switch {
		case r.Err != nil:
		case r.Reply.Status == node.Held || r.Reply.Status == node.Foreign:
			if r.Reply.Left != node.NoExpiry {
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
	// With a quorum free already it was a split vote, which time does not
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
