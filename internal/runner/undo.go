package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file undoes grants that nobody uses: grants of an attempt that failed,
// grants that came too late, and keys of a lease on a node that missed the
// release. None of it uses a caller's context.

// undo sends req, an OpRelease, to one node in the background. If that fails,
// the node's janitor repeats it.
func (c *Cluster) undo(i int, req node.Request) {
	c.background.run(func() {
		m := c.members[i]
		ctx, cancel := context.WithTimeout(context.Background(), c.cfg.NodeTimeout)
		defer cancel()
		if r := m.Call(ctx, req); r.Err != nil {
			m.janitor.add(m, req)
		}
	})
}

// abandonedClaims has the claims that are being undone. A node that has not
// executed the undo yet answers the client's next attempt with the value of its
// last one. Without them, our own leftover would look like another client's lock.
type abandonedClaims struct {
	mu    sync.Mutex
	reqs  map[string]leftover // by value
	swept time.Duration       // when it was last looked through
}

// note keeps the release of a claim while a late request may leave something of
// the claim on a node.
func (d *abandonedClaims) note(c *Cluster, release node.Request, released bool) {
	now, left := c.clock.Uptime(), protocol.Lateness(&release, c.cfg.NodeTimeout)
	if released {
		left = min(left, latePlace)
	}
	d.add(leftover{req: release, until: now + left, released: released}, now)
}

// latePlace is how long after its release a late request may still queue a
// lease. Later than that is ignored: the place then delays those behind it by a
// second.
const latePlace = 10 * time.Second

func (d *abandonedClaims) add(l leftover, now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reqs == nil {
		d.reqs = map[string]leftover{}
	}
	// Sweeping at doubling sizes, and now and then, keeps the cost constant on
	// average. A map keeps its memory, so a new one takes its place.
	if n := len(d.reqs); n >= 64 && (n&(n-1) == 0 || now-d.swept >= latePlace) {
		d.swept = now
		kept := map[string]leftover{}
		for value, l := range d.reqs {
			if l.until > now {
				kept[value] = l
			}
		}
		d.reqs = kept
	}
	d.reqs[l.req.Value] = l
}

// inTheWay returns the release of a claim of ours that an acquisition was refused
// for: the node has not executed it yet.
func (d *abandonedClaims) inTheWay(op node.Op, reply node.Reply, err error) (release node.Request, ours bool) {
	if err != nil || reply.Status != node.Held || op != node.OpAcquire {
		return node.Request{}, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.reqs[reply.Value]
	return l.req, ok && !l.released
}

// queued returns the release of a claim of ours that a node has queued: a late
// request has done that.
func (d *abandonedClaims) queued(value string) (release node.Request, ours bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.reqs[value]
	return l.req, ok
}

// repeatedError is the error of an acquisition that was repeated because a claim
// of ours was in its way. The first one may have queued the caller, so it is not
// ErrUnsent, whatever happened to the second.
type repeatedError struct{ error }

func repeated(err error) error {
	if err == nil {
		return nil
	}
	return repeatedError{err}
}

func (e repeatedError) Is(target error) bool {
	return target != node.ErrUnsent && errors.Is(e.error, target)
}

func (e repeatedError) As(target any) bool { return errors.As(e.error, target) }

// leftover is a release that a node has not confirmed.
type leftover struct {
	req   node.Request
	until time.Duration // on the client's clock: when the key has expired anyway
	// released is set for a lease that its holder releases. The release deletes
	// the key, so only a place in a queue may be left.
	released bool
}
