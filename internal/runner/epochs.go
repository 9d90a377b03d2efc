package runner

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file keeps the epochs of the nodes' markers, which protocol/epochs.go judges.

// epochs is what the nodes of this membership have noted, as far as is known.
type epochs struct {
	mu    sync.Mutex
	known node.Epochs
}

// noteEpochs records what a reply says of the node's epoch and of the others'.
// It reports whether a node has not noted what is known.
func (m *Member) noteEpochs(reply *node.Marker) (behind bool) {
	c := m.cluster
	raise(&m.epoch, reply.Epoch)
	now, news := protocol.Shows(reply, c.guard.parameters().Membership, m.shown.Load())
	if !news {
		return false
	}
	c.epochs.mu.Lock()
	defer c.epochs.mu.Unlock()
	c.epochs.known = now.AddTo(c.epochs.known)
	if now.Replaces(m.shown.Swap(new(now))) {
		m.epoch.Store(c.epochs.known.Of(now.Lineage))
	}
	for _, other := range c.members {
		if s := other.shown.Load(); s != nil {
			raise(&other.epoch, c.epochs.known.Of(s.Lineage))
			behind = behind || s.Lacks(c.epochs.known)
		}
	}
	return behind
}

// raise raises a number that is never lowered so.
func raise(n *atomic.Uint64, to uint64) {
	for {
		if known := n.Load(); known >= to || n.CompareAndSwap(known, to) {
			return
		}
	}
}

// lineages is what nodes are marked with, and have noted before.
type lineages struct {
	of     map[*Member]string
	epochs node.Epochs
}

// lineages returns what the members are marked with that are in mark, if their markers
// are as seen.
func (c *Cluster) lineages(seen []protocol.Seen, mark protocol.Set) lineages {
	c.epochs.mu.Lock()
	defer c.epochs.mu.Unlock()
	of, epochs := protocol.Lineages(seen, mark, c.epochs.known, c.newLineage)
	l := lineages{of: map[*Member]string{}, epochs: epochs}
	for i, m := range c.members {
		l.of[m] = of[i]
	}
	return l
}

// newLineage draws a lineage.
func (c *Cluster) newLineage() string {
	var random [16]byte
	c.rand.value(&random)
	return fmt.Sprintf("%x", random[:4])
}
