package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
)

// waiter is one place in a queue.
type waiter struct {
	ticket int64
	value  string
	until  time.Time
}

func (w waiter) compare(o waiter) int {
	return cmp.Or(cmp.Compare(w.ticket, o.ticket), cmp.Compare(w.value, o.value))
}

// queue holds the waiters for one name, ordered by ticket and then by value.
type queue []waiter

func (q *queue) settle(now time.Time) {
	*q = slices.DeleteFunc(*q, func(w waiter) bool { return !w.until.After(now) })
}

// join puts the request's value at its place, or renews the place it has: a
// second ticket does not move it.
func (q *queue) join(req redlatch.Request, now time.Time) {
	if q.renew(req.Value, now) {
		return
	}
	w := waiter{req.Ticket, req.Value, now.Add(redlatch.WaiterLease)}
	i, _ := slices.BinarySearchFunc(*q, w, waiter.compare)
	*q = slices.Insert(*q, i, w)
}

// renew keeps the value's place for another lease, if it has one.
func (q queue) renew(value string, now time.Time) bool {
	r := q.rank(value)
	if r == 0 {
		return false
	}
	q[r-1].until = now.Add(redlatch.WaiterLease)
	return true
}

// isNext reports whether a free name is the request's to take: nobody waits,
// or it stands at the head, or it would if it joined.
func (q queue) isNext(req redlatch.Request) bool {
	if len(q) == 0 {
		return true
	}
	if r := q.rank(req.Value); r > 0 {
		return r == 1
	}
	return req.Wait && waiter.compare(waiter{ticket: req.Ticket, value: req.Value}, q[0]) < 0
}

func (q *queue) leave(value string) {
	*q = slices.DeleteFunc(*q, func(w waiter) bool { return w.value == value })
}

// rank returns the value's place, 1 for the head, or 0.
func (q queue) rank(value string) int {
	return slices.IndexFunc(q, func(w waiter) bool { return w.value == value }) + 1
}
