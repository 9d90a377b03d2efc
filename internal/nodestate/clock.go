package nodestate

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is for nodes that store entries.

// Move adds d to every time at which something expires. So a node can store these
// on a clock that nobody sets, and judge tokens by the wall clock. Records stay as
// they are: they outlive a reboot, and no other clock does.
func (e *Entry) Move(d time.Duration) {
	if d == 0 {
		return
	}
	move := func(t *time.Time) {
		if !t.IsZero() {
			*t = t.Add(d)
		}
	}
	for i := range e.Holders {
		move(&e.Holders[i].Until)
	}
	move(&e.FenceUntil)
	move(&e.BreakUntil)
	for i := range e.Ended {
		move(&e.Ended[i].Until)
	}
	move(&e.Queue.Lapses)
	move(&e.Queue.Touched)
}

// Bind lets a fence whose retention is over bind on, and puts it at floor at least:
// the highest fence of all names that the node has forgotten. Call it before
// Settle.
func (e *Entry) Bind(floor node.Token, now time.Time) {
	if e.FenceUntil.After(now) {
		return
	}
	e.Fence, e.Floor = max(e.Fence, floor), max(e.Floor, floor)
	e.FenceUntil = time.Time{}
	if e.Fence > 0 {
		e.FenceUntil = now.Add(time.Microsecond) // for this request
	}
}

// Reboot leaves what outlives the processes of a machine: the records. It returns
// the fence.
func (e *Entry) Reboot() node.Token {
	fence := e.Fence
	*e = Entry{Records: e.Records}
	return fence
}

// Coarsen undoes a renewal since before that is not worth a write. The head's place
// then lasts for half of its lease at least, and waiters that poll ask sooner.
func (q *Queue) Coarsen(before *Queue) {
	if q.Touched.Sub(before.Touched) < queueRetention/3 {
		q.Touched = before.Touched
	}
	if q.Head == before.Head && q.Notice == before.Notice &&
		q.Lapses.After(before.Lapses) && q.Lapses.Sub(before.Lapses) < node.WaiterLease/2 {
		q.Lapses = before.Lapses
	}
}
