package runner

import (
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// This file keeps the epochs of the nodes' markers. Each marking raises a node's
// epoch. A server that comes back as it was before another one took its place
// has a lower epoch than this client has seen, or than the other nodes have
// noted. Its marker does not show that by itself: it is marked again, above what
// is known, with a whole quarantine. This file only compares numbers that the
// nodes reported: protocol.FailedBack and Claim.distrust judge them.

// noteEpochs records what a reply says of the node's epoch and of the others'.
// It reports whether a node has not noted what is known of the others.
func (m *Member) noteEpochs(reply *node.Reply) (behind bool) {
	if reply.Epoch == 0 {
		return false
	}
	grew := m.raise(reply.Epoch)
	if noted := m.noted.Load(); reply.Epochs != "" && (noted == nil || *noted != reply.Epochs) {
		epochs := reply.Epochs
		m.noted.Store(&epochs)
		for _, other := range m.cluster.members {
			if other != m {
				other.raise(epochs.Of(other.key))
			}
		}
		grew = true
	}
	if !grew {
		return false
	}
	for _, other := range m.cluster.members {
		if noted := other.noted.Load(); noted != nil && m.cluster.lacks(other, *noted) {
			return true
		}
	}
	return false
}

// raise raises the epoch that is known of the node, and reports whether it was
// lower.
func (m *Member) raise(to uint64) bool {
	for {
		known := m.epoch.Load()
		if known >= to {
			return false
		}
		if m.epoch.CompareAndSwap(known, to) {
			return true
		}
	}
}

// lacks reports whether a node that has noted these epochs lacks any that is
// known of another node.
func (c *Cluster) lacks(m *Member, noted node.Epochs) bool {
	for _, other := range c.members {
		if other != m && other.epoch.Load() > noted.Of(other.key) {
			return true
		}
	}
	return false
}

// epochsFor returns the epochs of all nodes but m, as they are when the nodes of
// marked have been marked.
func (c *Cluster) epochsFor(m *Member, marked protocol.Set) node.Epochs {
	of := map[string]uint64{}
	for _, other := range c.members {
		if other.key == m.key {
			continue
		}
		of[other.key] = other.epoch.Load()
		if marked.Has(other.index) {
			of[other.key]++
		}
	}
	return node.NewEpochs(of)
}
