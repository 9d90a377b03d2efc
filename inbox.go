package redlatch

import (
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// inbox knows which claims wait, so that notifications of the nodes reach them. One
// serves all names of a client.
type inbox struct {
	missed atomic.Uint32 // how often a node said that something may have been

	mu     sync.Mutex
	claims map[string]*claim // by value
	// early is the nodes that offered a lock to a value before the answer that
	// queued it was taken in: wakes have a connection of their own. order is
	// its values, oldest first.
	early map[string]protocol.Set
	order []string
	stops []func()
}

// maxEarly bounds what is kept for values that are not known yet, or not any
// more.
const maxEarly = 64

// listen begins to listen to every node that wakes.
func (b *inbox) listen(c *Client) {
	b.claims, b.early = map[string]*claim{}, map[string]protocol.Set{}
	for i, m := range c.members {
		if w, ok := m.node.(node.Waker); ok {
			b.stops = append(b.stops, w.Listen(func(wake node.Wake) { b.deliver(i, m, wake) }))
		}
	}
}

// close ends the listening.
func (b *inbox) close() {
	for _, stop := range b.stops {
		stop()
	}
}

// expect has notifications for the claim delivered to it until it is over: also
// after it was won, since a node that was slow may offer the lock then. It
// returns the nodes that have done so already. The claim's mutex is held.
func (b *inbox) expect(cl *claim) protocol.Set {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claims[cl.core.Value()] = cl
	return b.early[cl.core.Value()]
}

// forget ends that. The claim's mutex is held.
func (b *inbox) forget(cl *claim) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.claims, cl.core.Value())
}

// deliver passes on what a node reported.
func (b *inbox) deliver(i int, m *member, wake node.Wake) {
	if wake.Kind == node.WakeMissed {
		m.noteWakes(wake.Err)
		b.missed.Add(1)
		for _, cl := range b.all() {
			cl.woken(i, wake)
		}
		return
	}
	if release, ours := m.client.dropped.place(wake.Value); ours {
		// A request that came late has queued what we gave up.
		m.client.undo(i, release)
		return
	}
	b.mu.Lock()
	cl := b.claims[wake.Value]
	if cl == nil && wake.Kind.Asks() {
		b.keep(wake.Value, i)
	}
	b.mu.Unlock()
	if cl != nil {
		cl.woken(i, wake)
	}
}

// keep remembers a notification for a value that is not known.
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

func (b *inbox) all() []*claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]*claim, 0, len(b.claims))
	for _, cl := range b.claims {
		all = append(all, cl)
	}
	return all
}
