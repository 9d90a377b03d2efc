package runner

import (
	"fmt"
	"sync"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file keeps the epochs of the nodes' markers. Each marking raises a node's
// epoch. A server that comes back as it was before another one took its place
// has a lower epoch than this client has seen, or than the other nodes have
// noted for its lineage. Its marker does not show that by itself: it is marked again,
// above what is known, with a whole quarantine. This file only compares numbers that
// the nodes reported: protocol.FailedBack, protocol.Lineages and Claim.distrust judge
// them.

// epochs is what the nodes of this membership have noted, as far as is known.
type epochs struct {
	mu    sync.Mutex
	known node.Epochs
}

// shown is what a node's marker was last seen to say.
type shown struct {
	lineage string
	epoch   uint64
	epochs  node.Epochs
}

// noteEpochs records what a reply says of the node's epoch and of the others'.
// It reports whether a node has not noted what is known.
func (m *Member) noteEpochs(reply *node.Marker) (behind bool) {
	c := m.cluster
	if reply.Epoch == 0 {
		return false
	}
	m.raise(reply.Epoch)
	if reply.Lineage == "" || reply.Guard != nil && reply.Guard.Membership != c.guard.parameters().Membership {
		return false
	}
	now, last := shown{reply.Lineage, reply.Epoch, reply.Epochs}, m.shown.Load()
	if now.epochs == "" && last != nil {
		now.epochs = last.epochs // it was left out
	}
	if last != nil && now == *last {
		return false
	}
	c.epochs.mu.Lock()
	defer c.epochs.mu.Unlock()
	c.epochs.known = c.epochs.known.Merge(now.epochs).Merge(node.NewEpochs(map[string]uint64{now.lineage: now.epoch}))
	if last := m.shown.Swap(new(now)); last != nil && last.lineage != now.lineage {
		// What was known is of data that is gone. The lineage that took its place may
		// have a lower epoch than the one that ended all unlisted ones.
		m.epoch.Store(c.epochs.known.Of(now.lineage))
	}
	for _, other := range c.members {
		if s := other.shown.Load(); s != nil {
			other.raise(c.epochs.known.Of(s.lineage))
			behind = behind || s.epochs.Merge(c.epochs.known) != s.epochs
		}
	}
	return behind
}

// raise raises the epoch that is known of the node.
func (m *Member) raise(to uint64) {
	for {
		if known := m.epoch.Load(); known >= to || m.epoch.CompareAndSwap(known, to) {
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
// are like states says.
func (c *Cluster) lineages(states []NodeState, mark protocol.Set) lineages {
	seen := make([]protocol.Seen, len(c.members))
	generation := c.guard.parameters().Generation
	for i, s := range states[:len(seen)] {
		seen[i].Epoch = c.members[i].epoch.Load()
		if s.Err == nil && s.Marked != nil && s.Marked.Membership == c.guard.parameters().Membership && s.Marked.Generation >= generation {
			seen[i].Lineage = s.Lineage
		}
	}
	c.epochs.mu.Lock()
	known := c.epochs.known
	c.epochs.mu.Unlock()
	of, epochs := protocol.Lineages(seen, mark, known, c.newLineage)
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
