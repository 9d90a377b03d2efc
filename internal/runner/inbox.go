package runner

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// inbox passes the nodes' notifications to the claims that wait. One inbox
// serves all names of a client. (That of a Redis node is the channel by which they come.)
type inbox struct {
	missed atomic.Uint32 // how often a node reported that notifications may have been lost

	mu     sync.Mutex
	claims map[string]*Claim // by value
	// early has the nodes that notified a value before the answer that queued
	// it was handled: notifications have a connection of their own. order is
	// its values, oldest first.
	early map[string]protocol.Set
	order []string
	stops []func()
}

// maxEarly is for how many unknown values notifications are kept. A value is
// unknown if its claim does not wait yet, or is over.
const maxEarly = 64

// listen starts listening to every node that can notify.
func (b *inbox) listen(c *Cluster) {
	b.claims, b.early = map[string]*Claim{}, map[string]protocol.Set{}
	for i, m := range c.members {
		if w, ok := m.node.(node.Waker); ok {
			b.stops = append(b.stops, w.Listen(func(wake node.Wake) { b.deliver(i, m, wake) }))
		}
	}
}

// close stops listening.
func (b *inbox) close() {
	for _, stop := range b.stops {
		stop()
	}
}

// expect delivers notifications to the claim until the claim is over. That
// includes the time after it was won, because a slow node may still notify it
// then. It returns the nodes that have already done so. The claim's mutex is
// held.
func (b *inbox) expect(cl *Claim) protocol.Set {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims[cl.core.Value()] = cl
	return b.early[cl.core.Value()]
}

// forget stops the delivery. The claim's mutex is held.
func (b *inbox) forget(cl *Claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.claims, cl.core.Value())
}

// deliver passes on a node's notification.
func (b *inbox) deliver(i int, m *Member, wake node.Wake) {
	if wake.Kind == node.WakeMissed {
		m.noteWakes(wake.Err)
		b.missed.Add(1)
		for _, cl := range b.all() {
			cl.woken(i, wake)
		}
		return
	}
	if release, ours := m.cluster.abandoned.queued(wake.Value); ours {
		m.cluster.undo(i, release)
		return
	}
	b.mu.Lock()
	cl := b.claims[wake.Value]
	if cl == nil && protocol.AsksAtOnce(wake.Kind) {
		b.keep(wake.Value, i)
	}
	b.mu.Unlock()
	if cl != nil {
		cl.woken(i, wake)
	}
}

// keep stores a notification for an unknown value.
func (b *inbox) keep(value string, i int) {
	if _, known := b.early[value]; !known {
		if len(b.order) == maxEarly {
			delete(b.early, b.order[0])
			b.order = b.order[1:]
		}
		b.order = append(b.order, value)
	}
	b.early[value] |= protocol.Of(i)
}

func (b *inbox) all() []*Claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.claims))
}
