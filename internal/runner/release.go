package runner

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// Release sends the release. It returns false if the claim was over before, if
// another caller releases it, or if it was passed on, before or instead.
// Otherwise AwaitRelease must follow: with waits at once, and with the same context.
func (cl *Claim) Release(ctx context.Context, by Owner, waits bool) bool {
	if cl.PassOn(by) {
		return false
	}
	cl.mu.Lock()
	if cl.owner != by || cl.core.State().IsOver() || cl.freed != nil {
		cl.mu.Unlock()
		return false
	}
	p := cl.c.newParker()
	cl.freed = p // from now on it is not passed on
	cl.mu.Unlock()
	if waits {
		cl.handleAndRead(protocol.Release, ctx, p)
	} else {
		cl.handle(protocol.Release, ours)
	}
	return true
}

// AwaitRelease waits until the result of the release is known or ctx ends.
func (cl *Claim) AwaitRelease(ctx context.Context) {
	cl.mu.Lock()
	p := cl.freed
	timer := cl.core.Timer()
	cl.mu.Unlock()
	p.read(ctx, cl.c, timer)
	if at, waits := timer.Get(); len(p.signal) > 0 || waits && cl.awaitFreed(ctx, p, at) {
		cl.c.reuse(p)
	}
}

// longestQueue is how long a release waits for a connection of the program's own
// pool, in multiples of its own time limit.
const longestQueue = 20

// crowded reports whether requests wait for a connection of a node's own pool.
func (c *Cluster) crowded() bool {
	for _, m := range c.members {
		if q, ok := m.node.(node.Queuer); ok && q.Queued() > 0 {
			return true
		}
	}
	return false
}

// awaitFreed waits for the release. at is its time limit, which does not count
// while requests wait for a connection of the program's own pool. It returns
// false if ctx ended before.
func (cl *Claim) awaitFreed(ctx context.Context, p *parker, at time.Duration) bool {
	limit := at - cl.c.clock.Uptime()
	p.timer.Reset(limit)
	defer p.timer.Stop()
	for turns := 0; ; turns++ {
		select {
		case <-p.signal:
			return true
		case <-ctx.Done():
			return false
		case <-p.timer.C:
			if turns < longestQueue && cl.c.crowded() {
				p.timer.Reset(limit) // it may not be sent yet: nothing is known of the node
				continue
			}
			cl.handle(protocol.Timer, ours)
			p.timer.Reset(time.Millisecond) // in case the timer fired early
		}
	}
}
