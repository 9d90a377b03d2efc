package nodestate

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// Entry is all that a node knows about one name. The zero value is a name that
// was never used.
type Entry struct {
	// Value is the holder, Token the token that it was granted with, 0 for
	// none, and Until its expiry. All are zero while the name is free.
	Value string
	Token node.Token
	Until time.Time

	// Fence is the highest token, 0 for none, and FenceUntil is when it is
	// forgotten.
	Fence      node.Token
	FenceUntil time.Time

	Queue Queue
}

// Clone returns a copy that shares nothing with e.
func (e *Entry) Clone() Entry {
	c := *e
	c.Queue = e.Queue.clone()
	return c
}

// Settle removes what has expired, so that later code need not check the clock.
// There are no timers; the difference cannot be seen from outside.
func (e *Entry) Settle(now time.Time) {
	if !e.Until.After(now) {
		e.free()
	}
	if !e.FenceUntil.After(now) {
		e.Fence, e.FenceUntil = 0, time.Time{}
	}
	e.Queue.settle(now)
}

// Listing returns the node's listing of the name. The entry is settled.
func (e *Entry) Listing(name string, now time.Time) node.Listing {
	l := node.Listing{Name: name, Reply: node.Reply{Status: e.taken(), Fence: e.Fence, Now: now}}
	if e.held() {
		l.Reply.Value, l.Reply.HolderToken, l.Reply.Left = e.Value, e.Token, e.Until.Sub(now)
	}
	waiters := e.Queue.Waiters
	l.Waiting = len(waiters)
	l.Waiters = append(l.Waiters, waiters[:min(len(waiters), node.MaxWaiters)]...)
	return l
}

func (e *Entry) held() bool               { return !e.Until.IsZero() }
func (e *Entry) heldBy(value string) bool { return e.held() && e.Value == value }

// dead reports whether there is nothing to store.
func (e *Entry) dead() bool {
	return !e.held() && e.Fence == 0 && e.Queue.empty()
}

// taken returns Held or Absent.
func (e *Entry) taken() node.Status {
	if e.held() {
		return node.Held
	}
	return node.Absent
}

// grant gives the name to the request's value. The holder's token stays the
// same when others raise the fence later.
func (e *Entry) grant(req node.Request, now time.Time) {
	e.Value, e.Token, e.Until = req.Value, req.Token, now.Add(req.TTL)
	e.raise(req, now)
}

func (e *Entry) free() { e.Value, e.Token, e.Until = "", 0, time.Time{} }

// raise raises the fence to the request's token and keeps it for Retention from
// now. It lowers neither.
func (e *Entry) raise(req node.Request, now time.Time) {
	if req.Token == 0 {
		return
	}
	e.Fence = max(e.Fence, req.Token)
	if u := now.Add(req.Retention); u.After(e.FenceUntil) {
		e.FenceUntil = u
	}
}
