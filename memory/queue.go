package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// waiter is one place in a queue.
type waiter struct {
	ticket int64
	value  string
}

func (w waiter) compare(o waiter) int {
	return cmp.Or(cmp.Compare(w.ticket, o.ticket), cmp.Compare(w.value, o.value))
}

// queue holds the waiters for one name, ordered by ticket and then by value.
// Only the first of them can lapse, and those with it who were called: who stands
// behind them is in nobody's way.
type queue struct {
	waiters []waiter

	// head is the value that was found first in line, lapses is when it loses
	// its place, and told what it knows. Only its own asking puts that off.
	head   string
	lapses time.Time
	told   told
	// near is the value that was told that it is next but one.
	near string
	// called is those behind a head that did not ask, who were told to ask at
	// once and have not: they lapse with the head that they have now. reach is
	// how many were in question.
	called []string
	reach  int

	touched time.Time // when it was last served
}

// queueRetention is how long a queue is remembered that nobody asks about. It
// is far above the time after which every waiter asks again.
const queueRetention = 90 * time.Second

// told is what the head of a queue knows.
type told uint8

const (
	untold told = iota // that it is near, at the most
	turn               // that it is its turn, and the name is kept for it
	taken              // the same, and another took the name before it asked
)

func (q *queue) empty() bool { return len(q.waiters) == 0 }

// serving is what a queue must know of the moment in which it is served.
type serving struct {
	now   time.Time
	fence node.Token
	asker string        // who has just asked, and so need not be told
	turn  time.Duration // how long a name is kept for whom it was offered to
	wakes []node.Wake
	watch bool // the asker is to see whether the one before it comes
}

func (s *serving) tell(kind node.WakeKind, value string) {
	if value != s.asker {
		s.wakes = append(s.wakes, node.Wake{Kind: kind, Value: value, Fence: s.fence})
	}
}

// serve sees to it that somebody who is alive stands first in line, and knows
// what to do. free says that the name is to be had.
func (q *queue) serve(free bool, s *serving) {
	q.touched = s.now
	q.called = slices.DeleteFunc(q.called, func(v string) bool { return v == s.asker })
	unheard := q.lapse(s)
	if len(q.waiters) == 0 {
		*q = queue{}
		return
	}
	first := q.waiters[0].value
	switch {
	case first != q.head:
		q.head, q.told, q.lapses = first, untold, s.now.Add(node.WaiterLease)
		if first != q.near && !free {
			s.tell(node.WakeNear, first)
		}
	case first == s.asker:
		q.told, q.lapses = untold, s.now.Add(node.WaiterLease)
	case q.told == turn && !free:
		q.told = taken
	}
	if free && q.told != turn && first != s.asker {
		if q.told == untold {
			q.lapses = s.now.Add(s.turn)
		}
		q.told = turn
		s.watch = true
		s.tell(node.WakeTurn, first)
	}
	if unheard && first != s.asker {
		q.call(s)
	}
	if q.told == turn && q.lapses.Sub(s.now) <= s.turn-node.TurnLease/6 {
		s.watch = true // it is late
	}
	// Two know that they are near, at all times: each sees if the other is
	// gone.
	if len(q.waiters) > 1 && q.waiters[1].value != q.near {
		q.near = q.waiters[1].value
		s.tell(node.WakeNear, q.near)
	}
}

// lapse drops the head if its time is over, and with it those who were called
// and did not ask. It reports whether nobody of them has been heard of, so that
// those behind may be gone too.
func (q *queue) lapse(s *serving) (unheard bool) {
	if !q.first(q.head) || q.lapses.After(s.now) || q.head == s.asker {
		return false
	}
	unheard = len(q.called) == q.reach
	for _, v := range append(q.called, q.head) {
		q.leave(v)
	}
	q.called = nil
	if !unheard {
		q.reach = 0
	}
	return unheard
}

// A call reaches so many times as many places as the one before it, of which
// nobody was heard; and this many at the most.
const (
	callFactor = 8
	callMost   = 512
)

// call asks those behind the head to show that they are there. Where nobody can
// be told, all come and ask by themselves.
func (q *queue) call(s *serving) {
	q.reach = min(callFactor*(q.reach+1), callMost) - 1
	if s.turn == node.WaiterLease {
		q.reach = callMost - 1
	}
	q.reach = min(q.reach, len(q.waiters)-1)
	for _, w := range q.waiters[1 : q.reach+1] {
		if w.value != s.asker {
			q.called = append(q.called, w.value)
			s.tell(node.WakeCall, w.value)
		}
	}
	if q.reach > 0 {
		q.near = q.waiters[1].value
	}
}

// settle forgets waiters of whom nothing was heard for long.
func (q *queue) settle(now time.Time) {
	if len(q.waiters) > 0 && now.Sub(q.touched) > queueRetention {
		*q = queue{}
	}
}

// join puts the request's value at its place. A second ticket does not move
// it.
func (q *queue) join(req node.Request) {
	if q.rank(req.Value) > 0 {
		return
	}
	w := waiter{req.Ticket, req.Value}
	i, _ := slices.BinarySearchFunc(q.waiters, w, waiter.compare)
	q.waiters = slices.Insert(q.waiters, i, w)
}

// isNext reports whether a free name is the request's to take: nobody waits,
// or it stands at the head, or it would if it joined.
func (q *queue) isNext(req node.Request) bool {
	if q.empty() || req.Barge {
		return true
	}
	if r := q.rank(req.Value); r > 0 {
		return r == 1
	}
	return req.Wait && q.precedes(req)
}

// first reports whether the value stands first in line.
func (q *queue) first(value string) bool { return len(q.waiters) > 0 && q.waiters[0].value == value }

// precedes reports whether the request's ticket comes before all that wait.
func (q *queue) precedes(req node.Request) bool {
	return q.empty() || waiter.compare(waiter{ticket: req.Ticket, value: req.Value}, q.waiters[0]) < 0
}

func (q *queue) leave(value string) {
	q.waiters = slices.DeleteFunc(q.waiters, func(w waiter) bool { return w.value == value })
}

// rank returns the value's place, 1 for the head, or 0.
func (q *queue) rank(value string) int {
	return slices.IndexFunc(q.waiters, func(w waiter) bool { return w.value == value }) + 1
}
