package nodestate

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Entry is all that a node knows about one name. The zero value is a name that
// was never used.
type Entry struct {
	// Holders are the present holders; none while the name is free.
	Holders Holders

	// Fence is the highest token, 0 for none. Floor is the highest of an
	// exclusive or slotted holder, or of a release. FenceUntil is when both are
	// forgotten.
	Fence      node.Token
	Floor      node.Token
	FenceUntil time.Time
	// Break is the token of the last break, whether the name was held or free: a
	// holder with a lower one is not repaired. Broken is that of the last break
	// that took the name from a holder. BreakUntil is when both are forgotten.
	Break, Broken node.Token
	BreakUntil    time.Time
	// Ended are values that were released while a repair of them may be in
	// flight.
	Ended []Ended

	Queue   Queue
	Records Records
}

// Ended is a value that is not repaired until then.
type Ended struct {
	Value string
	Until time.Time
}

// Clone returns a copy that shares nothing with e.
func (e *Entry) Clone() Entry {
	c := *e
	c.Holders = slices.Clone(e.Holders)
	c.Ended = slices.Clone(e.Ended)
	c.Queue = e.Queue.clone()
	c.Records = e.Records.clone()
	return c
}

// Settle removes what has expired, so that later code need not check the clock.
// There are no timers; the difference cannot be seen from outside.
func (e *Entry) Settle(now time.Time) {
	e.Holders = slices.DeleteFunc(e.Holders, func(h node.Holder) bool { return !h.Until.After(now) })
	if !e.FenceUntil.After(now) {
		e.forgetFence()
	}
	if !e.BreakUntil.After(now) {
		e.Break, e.Broken, e.BreakUntil = 0, 0, time.Time{}
	}
	e.Ended = slices.DeleteFunc(e.Ended, func(x Ended) bool { return !x.Until.After(now) })
	e.Queue.settle(now)
	e.Records.settle(now)
}

// Listing returns the node's listing of the name. The entry is settled.
func (e *Entry) Listing(name string, now time.Time) node.Listing {
	l := node.Listing{Name: name, Reply: node.Reply{Status: e.taken(), Fence: e.Fence, Now: now}, Broken: e.Broken}
	if e.held() {
		e.Holders.Describe(&l.Reply, node.Share{}, now)
		l.Holders = slices.Clone(e.Holders)
	}
	waiters := e.Queue.Waiters
	l.Waiting = len(waiters)
	l.Waiters = append(l.Waiters, waiters[:min(len(waiters), node.MaxListed)]...)
	return l
}

// Look returns the listing with the records. The entry is settled.
func (e *Entry) Look(name string, now time.Time) node.Listing {
	l := e.Listing(name, now)
	completed := e.Records.ordered(now)
	l.Since, l.Completed = e.Records.Since, completed[:min(len(completed), node.MaxListed)]
	return l
}

func (e *Entry) held() bool { return len(e.Holders) > 0 }

// Dead reports whether there is nothing to store.
func (e *Entry) Dead() bool {
	return !e.held() && e.Fence == 0 && e.Break == 0 && len(e.Ended) == 0 && e.Queue.empty() && e.Records.empty()
}

// taken returns Held or Absent.
func (e *Entry) taken() node.Status {
	if e.held() {
		return node.Held
	}
	return node.Absent
}

// grant gives a share to the request's value, in place of the holder at the
// index own; -1 for none. The holder's token stays the same when others raise
// the fence later.
func (e *Entry) grant(req node.Request, share node.Share, own int, now time.Time) {
	h := node.Holder{Value: req.Value, Token: req.Token, Until: now.Add(req.TTL), Share: share}
	if own >= 0 {
		e.free(own)
	}
	e.Holders = e.Holders.With(h)
	if q := &e.Queue; q.beside != nil {
		// The turn of a waiter that does not fit any more begins when the name is free.
		room, at := e.Holders.Room(-1), q.rank(q.Head)-1
		if at < 0 || !room.Take(q.Waiters[at].Share) {
			q.unkeep()
		}
	}
	e.raise(req, share.Mode != node.Shared, now)
}

// free removes the holder at an index.
func (e *Entry) free(own int) { e.Holders = slices.Delete(e.Holders, own, own+1) }

// raise raises the fence, and the floor if it is to be raised, to the request's
// token, and keeps both for Retention from now. It lowers none of them.
func (e *Entry) raise(req node.Request, floor bool, now time.Time) {
	if req.Token == 0 {
		return
	}
	e.Fence = max(e.Fence, req.Token)
	if floor {
		e.Floor = max(e.Floor, req.Token)
	}
	e.keepFence(req, now)
}

// keepFence keeps the fence for Retention from now, and not shorter than
// before.
func (e *Entry) keepFence(req node.Request, now time.Time) {
	if u := now.Add(req.Retention); u.After(e.FenceUntil) {
		e.FenceUntil = u
	}
}

func (e *Entry) forgetFence() { e.Fence, e.Floor, e.FenceUntil = 0, 0, time.Time{} }

// end notes that a value is not repaired for so long.
func (e *Entry) end(value string, until time.Time) {
	for i := range e.Ended {
		if x := &e.Ended[i]; x.Value == value {
			x.Until = later(x.Until, until)
			return
		}
	}
	e.Ended = append(e.Ended, Ended{value, until})
}

// ended reports whether a value is not to be repaired.
func (e *Entry) ended(value string) bool {
	return slices.ContainsFunc(e.Ended, func(x Ended) bool { return x.Value == value })
}
