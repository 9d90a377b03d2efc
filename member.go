package redlatch

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// member is a node as a client knows it: what it has shown of itself so far.
type member struct {
	node   Node
	name   string
	prompt bool
	client *Client
	index  int

	// late is set while the last call ran into the time limit; probing while
	// such a node is being asked again.
	late    atomic.Bool
	probing atomic.Bool

	// inflight counts the calls under way; waitingSince is when, on the
	// client's clock, the node last answered one or was first asked.
	inflight     atomic.Int32
	waitingSince atomic.Int64

	// offset is how far the node's clock is ahead of ours, in nanoseconds,
	// and offsetKnown whether it has been seen.
	offset      atomic.Int64
	offsetKnown atomic.Bool

	// identified is set once the server behind the node is known not to be
	// that of another.
	identified atomic.Bool

	janitor janitor
}

// call asks the node, and notes what the answer shows of it.
func (m *member) call(ctx context.Context, req Request) NodeResult {
	if !m.identified.Load() {
		if err := m.client.ids.check(ctx, m); err != nil {
			return NodeResult{Node: m.name, Err: err}
		}
	}
	if m.inflight.Add(1) == 1 {
		m.waitingSince.Store(int64(m.client.clock.Uptime()))
	}
	sent := m.client.clock.Now()
	reply, err := m.node.Do(ctx, req)
	if err == nil && reply.Status == Held && req.Op == OpAcquire {
		if release, ours := m.client.dropped.get(reply.Value); ours {
			// It has not heard yet that we gave this up.
			if _, err = m.node.Do(ctx, release); err == nil {
				reply, err = m.node.Do(ctx, req)
			}
		}
	}
	m.waitingSince.Store(int64(m.client.clock.Uptime()))
	m.inflight.Add(-1)
	if err != nil {
		late := ctx.Err() != nil
		m.late.Store(late)
		if late && !errors.Is(err, ErrUnsent) {
			err = fmt.Errorf("%w (%w)", ErrNodeTimeout, err)
		}
		return NodeResult{Node: m.name, Err: err}
	}
	m.late.Store(false)
	if !reply.Now.IsZero() {
		// Half of the round trip is the best guess at when the node looked at
		// its clock.
		back := m.client.clock.Now()
		middle := sent.Add(back.Sub(sent) / 2)
		m.offset.Store(int64(reply.Now.Sub(middle)))
		m.offsetKnown.Store(true)
	}
	return NodeResult{Node: m.name, Reply: reply}
}

// suspect reports that the node is not answering: its last call ran into the
// time limit, or those under way have had no answer for as long.
func (m *member) suspect(now time.Duration) bool {
	return m.late.Load() ||
		m.inflight.Load() > 0 && now-time.Duration(m.waitingSince.Load()) > m.client.opts.NodeTimeout
}

// nodeSet is a set of nodes by their index.
type nodeSet uint16

func allNodes(n int) nodeSet { return 1<<n - 1 }

func (s nodeSet) has(i int) bool { return s&(1<<i) != 0 }
func (s nodeSet) count() int     { return bits.OnesCount16(uint16(s)) }

// suspects returns the nodes that are not answering, or none of them if the
// others are no quorum: then everyone is worth waiting for.
func (c *Client) suspects() nodeSet {
	var s nodeSet
	now := c.clock.Uptime()
	for i, m := range c.members {
		if m.suspect(now) {
			s |= 1 << i
		}
	}
	if len(c.members)-s.count() < quorumOf(len(c.members)) {
		return 0
	}
	return s
}

// clockOffset returns how far the nodes' clocks are ahead of ours: the median,
// so that a minority of wrong ones has no say.
func (c *Client) clockOffset() time.Duration {
	if len(c.members) == 1 {
		return time.Duration(c.members[0].offset.Load())
	}
	var buf [16]int64
	seen := buf[:0]
	for _, m := range c.members {
		if m.offsetKnown.Load() {
			seen = append(seen, m.offset.Load())
		}
	}
	if len(seen) == 0 {
		return 0
	}
	slices.Sort(seen)
	return time.Duration(seen[len(seen)/2])
}

// identities knows which server stands behind which node.
type identities struct {
	mu    sync.Mutex
	owner map[string]*member
}

// check asks m's node for its identity and refuses it if another node has the
// same: one server must not be counted twice.
func (ids *identities) check(ctx context.Context, m *member) error {
	node, ok := m.node.(Identifier)
	if !ok {
		m.identified.Store(true)
		return nil
	}
	id, err := node.Identity(ctx)
	if err != nil {
		if ctx.Err() != nil {
			m.late.Store(true)
			err = fmt.Errorf("%w (%w)", ErrNodeTimeout, err)
		}
		return fmt.Errorf("%w (%w)", err, ErrUnsent)
	}
	if id == "" {
		m.client.log.Warn("redlatch: node does not say which server it is; that no other node is the same one goes unchecked", "node", m.name)
		m.identified.Store(true)
		return nil
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if other := ids.owner[id]; other != nil && other != m {
		first, second := other, m
		if second.index < first.index {
			first, second = second, first
		}
		return fmt.Errorf("%w (%w)", &ConfigError{
			Field: fmt.Sprintf("nodes[%d]", second.index), Value: second.name,
			Bound: fmt.Sprintf("another server than nodes[%d], %s", first.index, first.name),
		}, ErrUnsent)
	}
	ids.owner[id] = m
	m.identified.Store(true)
	return nil
}
