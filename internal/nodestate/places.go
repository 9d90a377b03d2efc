package nodestate

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is for nodes that keep the queue beside the entry, in places, each of which
// only its owner writes. The entry says nothing of who waits. It says for whom a free
// name is kept: Head, until Lapses. So who waits writes nothing here, except the first
// one, and whoever finds that the first one does not take what is free.
//
// Places live with their processes. A waiter that does not take what is kept for it
// delays the others by one turn. Then its process has no places for the name any more.
// If it lives, it puts them again, with their old tickets.

// Beside says that the queue is in places, of which these are the first, in order. more says
// that there may be others behind them. fresh says that the name may have been free for
// a moment only: the first waiter is about to take it, and nobody needs to keep it for
// that one.
func (q *Queue) Beside(now time.Time, first []node.Waiter, more, fresh bool) {
	q.Waiters, q.beside = inTime(now, first), &beside{more: more, fresh: fresh}
}

const (
	// handOver is how much time a waiter must have left to be served in its turn: a name
	// that is kept for one who leaves meanwhile is idle until it has been passed on.
	handOver = 20 * time.Millisecond
	// longGone is when the end of a wait cannot be true, as the waiter is still there:
	// it was told by another clock.
	longGone = time.Second
)

// inTime returns the waiters with the one in front that is served first: the first one
// that has enough time left, or else the one that has most.
func inTime(now time.Time, ws []node.Waiter) []node.Waiter {
	best := 0
	for i, w := range ws {
		if InTime(now, w) {
			best = i
			break
		}
		if w.Until > ws[best].Until {
			best = i
		}
	}
	if best == 0 {
		return ws
	}
	return slices.Concat(ws[best:best+1], ws[:best], ws[best+1:])
}

// InTime reports whether a waiter has enough time left to be served.
func InTime(now time.Time, w node.Waiter) bool {
	left := time.Duration(w.Until-now.UnixMicro()) * time.Microsecond
	return w.Until == 0 || left >= handOver || left < -longGone
}

// Over reports whether a waiter's time is over.
func Over(now time.Time, w node.Waiter) bool {
	left := time.Duration(w.Until-now.UnixMicro()) * time.Microsecond
	return w.Until != 0 && left < 0 && left >= -longGone
}

// beside is what one request has to know of a queue in places, and what it comes to.
type beside struct {
	more, fresh bool
	evicts      *node.Waiter
	late        bool
}

// Evicts returns the waiter whose process missed its turn; nil for none.
func (q *Queue) Evicts() *node.Waiter { return q.beside.evicts }

// Late reports whether the request must have no place: see Entry.wait.
func (q *Queue) Late() bool { return q.beside.late }

// keep keeps a free name for the first waiter, and notifies it alone. A name that is kept
// for another one stays so until that one's turn is over.
func (q *Queue) keep(holders Holders, s *serving) {
	q.skip(s)
	room := holders.Room(-1)
	s.watch = q.beside.evicts != nil // if nobody else is in sight
	if len(q.Waiters) == 0 || !room.Take(q.Waiters[0].Share) {
		return
	}
	first := q.Waiters[0].Value
	// What is kept for one who has left is kept for nobody.
	kept := q.rank(q.Head) > 0 || q.Head != "" && q.Head == s.asker
	// The others in sight look again when its turn is over. Those behind them ask
	// less often, and all the same.
	s.watch = q.Head != s.asker && first != s.asker && q.rank(s.asker) > 0
	if kept || first == s.asker || q.beside.fresh && q.beside.evicts == nil {
		return
	}
	q.Head, q.Notice, q.Lapses = first, Turn, s.now.Add(s.turn)
	s.tell(node.WakeTurn, first)
}

// skip removes who did not take what was kept for it, and the other places of its
// process. It does nothing to who has left, or asks now.
func (q *Queue) skip(s *serving) {
	at := q.rank(q.Head) - 1
	if at < 0 || q.Head == s.asker || q.Lapses.After(s.now) {
		return
	}
	gone := q.Waiters[at]
	q.beside.evicts = &gone
	q.Waiters = slices.DeleteFunc(slices.Clone(q.Waiters), func(w node.Waiter) bool {
		return w.Value != s.asker && (w.Value == gone.Value || w.Process == gone.Process)
	})
	q.unkeep()
}

// unkeep keeps the name for nobody.
func (q *Queue) unkeep() { q.Head, q.Notice, q.Lapses = "", NoNotice, time.Time{} }

// isNextBeside is isNext where only the first places are in sight.
func (q *Queue) isNextBeside(req node.Request, asks bool, room Room) bool {
	kept := q.rank(q.Head) - 1
	switch {
	case asks && q.Head == req.Value: // also if others with older tickets are in sight now
		return room.Take(req.Share)
	case req.Op != node.OpYield && kept >= 0 && !room.Take(q.Waiters[kept].Share):
		return false
	}
	for i, w := range q.Waiters {
		switch {
		case asks && w.Value == req.Value:
			return room.Take(req.Share)
		case req.Op == node.OpYield && compare(waiter(req), w) < 0: // it came later
		case i != kept && !room.Take(w.Share):
			return false
		}
	}
	return (!q.beside.more || req.Op == node.OpYield) && room.Take(req.Share)
}

// Pass keeps a name that is free for the first waiter, if it is not kept for one. It
// returns the notifications. wakes says that they are delivered.
func (e *Entry) Pass(now time.Time, wakes bool) []node.Wake {
	s := &serving{now: now, fence: e.Fence, turn: turnOf(wakes)}
	e.Queue.keep(e.Holders, s)
	return s.wakes
}

// Kept reports whether the name is kept for one of the waiters, or has no room for the
// first of them.
func (e *Entry) Kept(first []node.Waiter) bool {
	room := e.Holders.Room(-1)
	return len(first) == 0 || !room.Take(first[0].Share) ||
		slices.ContainsFunc(first, func(w node.Waiter) bool { return w.Value == e.Queue.Head })
}

// FreshFor is how long a name may be free without being kept for anybody: the first
// waiter takes it meanwhile. Who sees it for longer keeps it for that one.
const FreshFor = 50 * time.Millisecond
