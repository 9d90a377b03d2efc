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
	Holders node.Holders

	// Fence is the highest token, 0 for none. Floor is the highest of an
	// exclusive or slotted holder, or of a release. FenceUntil is when both are
	// forgotten.
	Fence      node.Token
	Floor      node.Token
	FenceUntil time.Time
	// Released is the last time at which a share may have been released. It is
	// zero if that is not known: an exclusive holder came in between.
	Released time.Time

	Queue Queue
	Marks Marks
}

// Clone returns a copy that shares nothing with e.
func (e *Entry) Clone() Entry {
	c := *e
	c.Holders = slices.Clone(e.Holders)
	c.Queue = e.Queue.clone()
	c.Marks = e.Marks.clone()
	return c
}

// Settle removes what has expired, so that later code need not check the clock.
// There are no timers; the difference cannot be seen from outside.
func (e *Entry) Settle(now time.Time) {
	e.Holders = slices.DeleteFunc(e.Holders, func(h node.Holder) bool { return !h.Until.After(now) })
	if !e.FenceUntil.After(now) {
		e.forgetFence()
	}
	e.Queue.settle(now)
	e.Marks.settle(now)
}

// Listing returns the node's listing of the name. The entry is settled.
func (e *Entry) Listing(name string, now time.Time) node.Listing {
	l := node.Listing{Name: name, Reply: node.Reply{Status: e.taken(), Fence: e.Fence, Now: now}}
	if e.held() {
		e.Holders.Describe(&l.Reply, node.Share{}, now)
		l.Holders = slices.Clone(e.Holders)
	}
	waiters := e.Queue.Waiters
	l.Waiting = len(waiters)
	l.Waiters = append(l.Waiters, waiters[:min(len(waiters), node.MaxWaiters)]...)
	return l
}

func (e *Entry) held() bool { return len(e.Holders) > 0 }

// dead reports whether there is nothing to store.
func (e *Entry) dead() bool {
	return !e.held() && e.Fence == 0 && e.Queue.empty() && e.Marks.empty()
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
		e.Holders[own] = h
	} else {
		e.Holders = append(e.Holders, h)
	}
	e.raise(req, share.Mode != node.Shared, now)
	if share.Mode == node.Exclusive {
		e.Released = time.Time{}
	}
}

// free removes the holder at an index.
func (e *Entry) free(own int) { e.Holders = slices.Delete(e.Holders, own, own+1) }

// raise raises the fence, and the floor if it is to be raised, to the request's
// token, and keeps both for Retention from now. It lowers none of them.
func (e *Entry) raise(req node.Request, floor bool, now time.Time) {
	if req.Token == 0 {
		return
	}
	switch {
	case req.Mode == node.Exclusive && req.Token > e.Fence:
		e.Released = time.Time{}
	case req.Mode != node.Exclusive && e.Released.IsZero():
		e.Released = now
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

func (e *Entry) forgetFence() {
	e.Fence, e.Floor, e.FenceUntil, e.Released = 0, 0, time.Time{}, time.Time{}
}
