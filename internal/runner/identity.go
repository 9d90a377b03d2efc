package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// identities records which server is behind which node.
type identities struct {
	mu      sync.Mutex
	servers protocol.Servers
}

// identify checks the node's identity, unless it is known.
func (m *Member) identify(ctx context.Context) error {
	if m.identified.Load() {
		return nil
	}
	return m.cluster.ids.check(ctx, m)
}

// check asks m's node for its identity, and refuses it if another node has the
// same: one server must not be counted twice.
func (ids *identities) check(ctx context.Context, m *Member) error {
	n, ok := m.node.(node.Identifier)
	if !ok {
		m.identified.Store(true)
		return nil
	}
	sent := m.cluster.clock.Now()
	id, now, err := n.Identity(ctx)
	if err != nil {
		if !errors.Is(err, node.ErrUnsent) {
			err = fmt.Errorf("%w (%w)", err, node.ErrUnsent)
		}
		return err
	}
	m.showed(sent, m.cluster.clock.Now(), now)
	if now.IsZero() && id != "" {
		m.clockless.Store(true)
	}
	if id == "" {
		m.cluster.log.Warn("redlatch: node does not say which server it is; duplicate-server check skipped", "node", m.name)
		m.identified.Store(true)
		return nil
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if other := ids.servers.Found(id, m.index); other != m.index {
		first, second := m.cluster.members[min(other, m.index)], m.cluster.members[max(other, m.index)]
		return fmt.Errorf("%w (%w)", &node.ConfigError{
			Field: fmt.Sprintf("nodes[%d]", second.index), Value: second.name,
			Bound:   fmt.Sprintf("another server than nodes[%d], %s", first.index, first.name),
			Problem: fmt.Sprintf("duplicate server: %s and %s are the same; list it once", first.name, second.name),
		}, node.ErrUnsent)
	}
	m.identified.Store(true)
	if w, ok := m.node.(node.Warner); ok {
		for _, warning := range w.Warnings() {
			m.cluster.log.Error("redlatch: "+warning, "node", m.name)
		}
	}
	return nil
}
