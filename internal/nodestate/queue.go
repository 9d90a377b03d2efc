package nodestate

import (
	"cmp"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Queue has the waiters for one name.
//
// Where the queue is in the entry, Waiters are all of them, ordered by ticket, kind and
// value, and Head is the one that was last seen in front. Only the head can lapse,
// together with waiters behind it that were called and did not ask. All others delay
// nobody.
//
// Where the queue is in places (places.go), Waiters are the first three, and Head is the
// one for whom a free name is kept, until Lapses. What is below Notice is not used.
type Queue struct {
	Waiters []node.Waiter

	// Lapses is when the head loses its place, or its turn, and Notice what it was
	// notified of. Only a request of its own renews its place.
	Head   string
	Lapses time.Time
	Notice Notice
	// Near is the value that was notified that it is second. NearTurn says that
	// it was notified of its turn: there is room for it beside the head.
	Near     string
	NearTurn bool
	// Called are waiters behind a head that did not ask. They were notified to
	// ask at once, and have not: they lapse with the present head. Reach is how
	// many were called.
	Called []string
	Reach  int

	Touched time.Time // when it was last served

	beside *beside // where the queue is in places; else nil
}

func (q *Queue) clone() Queue {
	c := *q
	c.Waiters, c.Called = slices.Clone(q.Waiters), slices.Clone(q.Called)
	return c
}

// compare orders waiters.
func compare(a, b node.Waiter) int {
	if c := cmp.Compare(a.Ticket, b.Ticket); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Kind(), b.Kind()), cmp.Compare(a.Value, b.Value))
}

// queueRetention is how long a queue is remembered without a request. It is far
// longer than the time after which every waiter asks again.
const queueRetention = 90 * time.Second

// Notice is what the head of a queue was notified of.
type Notice uint8

// The notifications of a head.
const (
	// NoNotice: at most that it is near.
	NoNotice Notice = iota
	// Turn: that the name is free and kept for it.
	Turn
	// Taken: the same, but another took the name before it asked.
	Taken
)

func (q *Queue) empty() bool { return len(q.Waiters) == 0 && q.Head == "" }

// serving is what a queue needs to know about the present request.
type serving struct {
	now   time.Time
	fence node.Token
	asker string        // the waiter that has just asked, and so need not be notified
	turn  time.Duration // how long a name is kept for the waiter that was notified
	wakes []node.Wake
	// reserved says that the tokens of an extension are reserved.
	reserved bool
	watch    bool // the asker has to check whether the waiter before it takes the name
}

func (s *serving) tell(kind node.WakeKind, value string) {
	if value != s.asker {
		s.wakes = append(s.wakes, node.Wake{Kind: kind, Value: value, Fence: s.fence})
	}
}

// serve makes sure that the head of the queue is alive, and that it is notified
// if there is room for it beside the holders. So is the second, if there is
// room for both: each of them lets in the next. In places only the first is notified:
// see keep.
func (q *Queue) serve(holders Holders, s *serving) {
	if q.beside != nil {
		q.keep(holders, s)
		return
	}
	q.Touched = s.now
	q.Called = slices.DeleteFunc(q.Called, func(v string) bool { return v == s.asker })
	if q.Near == s.asker {
		q.NearTurn = false
	}
	unheard := q.lapse(s)
	if len(q.Waiters) == 0 {
		*q = Queue{}
		return
	}
	first, room := q.Waiters[0].Value, holders.Room(-1)
	free := room.Take(q.Waiters[0].Share)
	q.NearTurn = q.NearTurn && free
	switch {
	case first != q.Head:
		q.Head, q.Notice, q.Lapses = first, NoNotice, s.now.Add(node.WaiterLease)
		if first != q.Near && !free && !unheard {
			s.tell(node.WakeNear, first)
		}
	case first == s.asker:
		q.Notice, q.Lapses = NoNotice, s.now.Add(node.WaiterLease)
	case q.Notice == Turn && !free:
		q.Notice = Taken
	}
	if free && q.Notice != Turn && first != s.asker {
		if q.Notice == NoNotice {
			q.Lapses = s.now.Add(s.turn)
		}
		q.Notice = Turn
		s.watch = true
		if first != q.Near || !q.NearTurn {
			s.tell(node.WakeTurn, first)
		}
	}
	if unheard && first != s.asker {
		q.call(s)
	}
	if q.Notice == Turn && q.Lapses.Sub(s.now) <= s.turn-node.TurnLease/6 {
		s.watch = true // the head is late
	}
	// Two waiters know at all times that they are near: each notices if the
	// other is gone.
	if len(q.Waiters) < 2 {
		return
	}
	second := q.Waiters[1]
	turn := free && room.Take(second.Share)
	switch {
	case turn && (second.Value != q.Near || !q.NearTurn):
		s.tell(node.WakeTurn, second.Value)
	case !turn && second.Value != q.Near:
		s.tell(node.WakeNear, second.Value)
	}
	q.Near, q.NearTurn = second.Value, turn && second.Value != s.asker
}

// lapse removes the head if its time is over, together with the waiters that
// were called and did not ask. It reports whether none of them has asked: those
// behind may then be gone too.
func (q *Queue) lapse(s *serving) (unheard bool) {
	if !q.first(q.Head) || q.Lapses.After(s.now) || q.Head == s.asker {
		return false
	}
	unheard = len(q.Called) == q.Reach
	for _, v := range append(q.Called, q.Head) {
		q.leave(v)
	}
	q.Called = nil
	if !unheard {
		q.Reach = 0
	}
	return unheard
}

// Each call reaches callFactor times as many places as the one before, if
// nobody answered that one; and callMost places at most.
const (
	callFactor = 8
	callMost   = 512
)

// call asks the waiters behind the head to show that they are alive, and the head
// itself if it was not notified of its turn. If waiters cannot be notified, they
// all poll.
func (q *Queue) call(s *serving) {
	if q.Notice == NoNotice {
		q.Lapses = s.now.Add(s.turn)
		s.tell(node.WakeCall, q.Head)
	}
	q.Reach = min(callFactor*(q.Reach+1), callMost) - 1
	if s.turn == node.WaiterLease {
		q.Reach = callMost - 1
	}
	q.Reach = min(q.Reach, len(q.Waiters)-1)
	for _, w := range q.Waiters[1 : q.Reach+1] {
		if w.Value != s.asker {
			q.Called = append(q.Called, w.Value)
			s.tell(node.WakeCall, w.Value)
		}
	}
	if q.Reach > 0 {
		q.Near, q.NearTurn = q.Waiters[1].Value, false
	}
}

// settle removes the queue after a long time without a request.
func (q *Queue) settle(now time.Time) {
	if q.beside == nil && len(q.Waiters) > 0 && now.Sub(q.Touched) > queueRetention ||
		len(q.Waiters) == 0 && q.Head != "" && now.Sub(q.Lapses) > queueRetention {
		*q = Queue{beside: q.beside}
	}
}

// waiter returns the place that a request would have.
func waiter(req node.Request) node.Waiter {
	return node.Waiter{Ticket: req.Ticket, Value: req.Value, Share: node.Share{Mode: req.Mode, Slots: req.Slots}}
}

// join puts the request's value at its place. A second ticket does not move it.
func (q *Queue) join(req node.Request) {
	if q.rank(req.Value) > 0 {
		return
	}
	w := waiter(req)
	i, _ := slices.BinarySearchFunc(q.Waiters, w, compare)
	q.Waiters = slices.Insert(q.Waiters, i, w)
}

// Place returns the ticket of a request on a node without a clock. There a ticket is by
// the wall clock of the caller, which may be hours behind those of the others. A caller
// that is not queued yet, and seems to have come before the last waiter by more than the
// window, comes after it.
func (q *Queue) Place(req node.Request) int64 {
	if n := len(q.Waiters); n > 0 && q.rank(req.Value) == 0 {
		if last := q.Waiters[n-1].Ticket; last-req.Ticket > req.Window.Microseconds() {
			return last + 1
		}
	}
	return req.Ticket
}

// isNext reports whether there is room for the request, and for all waiters
// before it: a request that does not wait is behind all of them.
func (q *Queue) isNext(req node.Request, room Room) bool {
	asks := req.Wait || req.Op == node.OpYield
	if q.beside != nil {
		return q.isNextBeside(req, asks, room)
	}
	queued := asks && q.rank(req.Value) > 0
	for i, w := range q.Waiters {
		if queued && w.Value == req.Value || asks && !queued && compare(waiter(req), w) < 0 {
			break
		}
		if i == node.MaxSlots || !room.Take(w.Share) {
			return false
		}
	}
	return room.Take(req.Share)
}

// next returns the ticket of the head, or 0.
func (q *Queue) next() int64 {
	if q.empty() {
		return 0
	}
	return q.Waiters[0].Ticket
}

// first reports whether the value is the head of the queue.
func (q *Queue) first(value string) bool { return len(q.Waiters) > 0 && q.Waiters[0].Value == value }

// withdraw removes the place of a request's value. As with holders, a request
// for a share finds a waiter for the whole name, and not the other way round.
func (q *Queue) withdraw(req node.Request) {
	q.Waiters = slices.DeleteFunc(q.Waiters, func(w node.Waiter) bool {
		return w.Value == req.Value && (w.Mode == node.Exclusive || w.Kind() == req.Kind())
	})
}

func (q *Queue) leave(value string) {
	q.Waiters = slices.DeleteFunc(q.Waiters, func(w node.Waiter) bool { return w.Value == value })
}

// rank returns the value's place, 1 for the head, or 0.
func (q *Queue) rank(value string) int {
	return slices.IndexFunc(q.Waiters, func(w node.Waiter) bool { return w.Value == value }) + 1
}
