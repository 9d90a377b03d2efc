package memory

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Copy returns a node with the same name, locks, fences and queues, and with
// nobody listening: what a server has that is started again from its files.
func (n *Node) Copy() *Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := &Node{
		name: n.name, id: n.id, clock: n.clock,
		names:     make(map[string]*entry, len(n.names)),
		listeners: map[int]func(node.Wake){},
		sweepAt:   n.sweepAt,
	}
	for name, e := range n.names {
		twin := *e
		twin.queue.waiters = slices.Clone(e.queue.waiters)
		twin.queue.called = slices.Clone(e.queue.called)
		c.names[name] = &twin
	}
	return c
}

// Drop forgets a name as if there had never been anything of it. It reports
// whether somebody had it. A server does so that is short of memory and was
// told to evict.
func (n *Node) Drop(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.names[name]
	if e == nil {
		return false
	}
	had := e.until.After(n.clock())
	e.free()
	e.fence, e.fenceUntil = 0, time.Time{}
	return had
}
