package runner

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file undoes grants that nobody may have: those of an attempt that failed,
// those that came too late, and keys of a lease that a node was not there to
// release. None of it runs on a caller's context.

// undo sends req, an OpRelease, to one node in the background, and leaves it
// to the node's janitor if that fails.
func (c *Cluster) undo(i int, req node.Request) {
	if !c.background.start() {
		return
	}
	go func() {
		defer c.background.end()
		m := c.members[i]
		ctx, cancel := context.WithTimeout(context.Background(), c.cfg.NodeTimeout)
		defer cancel()
		if r := m.Call(ctx, req); r.Err != nil {
			m.janitor.add(m, req)
		}
	}()
}

// undoLater is undo after a delay in which a release in flight arrives.
func (c *Cluster) undoLater(i int, req node.Request) {
	if !c.background.start() {
		return
	}
	go func() {
		defer c.background.end()
		c.background.sleep(c.patience() / 10)
		c.undo(i, req)
	}()
}

// dropped remembers the claims that are being undone. A node that has not
// heard of it yet answers the next attempt of this client with the value of
// its last one, and without this our own leftover would look like another's
// lock.
type dropped struct {
	mu   sync.Mutex
	reqs map[string]leftover // by value
}

// remember keeps the release of a claim for as long as a late request may leave
// something of it on a node.
func (d *dropped) remember(c *Cluster, release node.Request, released bool) {
	now, left := c.clock.Uptime(), c.lateness(release)
	if released {
		left = min(left, latePlace)
	}
	d.add(leftover{req: release, until: now + left, released: released}, now)
}

// latePlace is how long after its release a lease may still be queued by a
// request that comes late. Longer than that is taken for never: the place then
// costs those behind it a second.
const latePlace = 10 * time.Second

func (d *dropped) add(l leftover, now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reqs == nil {
		d.reqs = map[string]leftover{}
	}
	// Looking through at doubling sizes keeps the cost constant on average.
	if n := len(d.reqs); n >= 64 && n&(n-1) == 0 {
		for value, l := range d.reqs {
			if l.until <= now {
				delete(d.reqs, value)
			}
		}
	}
	d.reqs[l.req.Value] = l
}

// key returns the release of a claim whose key may still be on a node.
func (d *dropped) key(value string) (node.Request, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.reqs[value]
	return l.req, ok && !l.released
}

// place returns the release of a claim whose place may still be in a queue.
func (d *dropped) place(value string) (node.Request, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.reqs[value]
	return l.req, ok
}

// leftover is a release that is owed to a node.
type leftover struct {
	req   node.Request
	until time.Duration // on the client's clock: when the key is gone anyway
	// released is set for a lease that its holder releases: the key goes by
	// that, and only its place in a queue may be left.
	released bool
}

// lateness is how long from now a request may leave something on a node that does
// not answer. The node may execute it as long as the token is in its window, by a
// clock that may be off by half of that; and what it sets then lives for the TTL.
// Without a token there is no such limit, and the node time limit is taken.
func (c *Cluster) lateness(req node.Request) time.Duration {
	d := req.TTL + c.cfg.NodeTimeout
	if req.Token != 0 {
		d += req.Window + req.Window/2
	}
	return d
}
