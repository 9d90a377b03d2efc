package memory

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// leastSweep is the number of names below which sweeping is not worth while.
const leastSweep = 64

// entry is all that a node knows of one name.
type entry struct {
	value string
	until time.Time  // zero while nobody has the name
	token node.Token // with which it was granted; 0 for none

	fence      node.Token
	fenceUntil time.Time

	queue queue
}

// settle drops what has lapsed, so that nothing after it need look at the
// clock. Nothing lapses by itself: a timer would be one to leak, and the same
// is seen from outside.
func (e *entry) settle(now time.Time) {
	if !e.until.After(now) {
		e.free()
	}
	if !e.fenceUntil.After(now) {
		e.fence, e.fenceUntil = 0, time.Time{}
	}
	e.queue.settle(now)
}

func (e *entry) held() bool               { return !e.until.IsZero() }
func (e *entry) heldBy(value string) bool { return e.held() && e.value == value }

func (e *entry) dead() bool {
	return !e.held() && e.fence == 0 && e.queue.empty()
}

// grant gives the name to the request's value. What others raise the fence to
// after that is not its token.
func (e *entry) grant(req node.Request, now time.Time) {
	e.value, e.token, e.until = req.Value, req.Token, now.Add(req.TTL)
	e.raise(req, now)
}

func (e *entry) free() { e.value, e.token, e.until = "", 0, time.Time{} }

// raise lifts the fence to the request's token and has it remembered for
// Retention from now. It lowers neither.
func (e *entry) raise(req node.Request, now time.Time) {
	if req.Token == 0 {
		return
	}
	e.fence = max(e.fence, req.Token)
	if u := now.Add(req.Retention); u.After(e.fenceUntil) {
		e.fenceUntil = u
	}
}

// entry returns what is known of a name as of now. One that was not known is
// kept only if store is called.
func (n *Node) entry(name string, now time.Time) *entry {
	e := n.names[name]
	if e == nil {
		return &entry{}
	}
	e.settle(now)
	return e
}

// store keeps the entry, or forgets it when there is nothing in it.
func (n *Node) store(name string, e *entry, now time.Time) {
	if e.dead() {
		delete(n.names, name)
		return
	}
	n.names[name] = e
	if len(n.names) < n.sweepAt {
		return
	}
	for name, e := range n.names {
		if e.settle(now); e.dead() {
			delete(n.names, name)
		}
	}
	// Twice what is alive: the dead never outnumber the living, and each
	// sweep is paid for by as many new names as it looks at.
	n.sweepAt = max(leastSweep, 2*len(n.names))
}
