package metrics

import (
	"slices"
	"strings"
	"sync"

	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// Source is what a *redlatch.Client is to an observer.
type Source interface{ Nodes() []observe.NodeHealth }

// Nodes is the nodes of any number of clients. The zero value has none.
type Nodes struct {
	mu      sync.Mutex
	clients []*Source
}

// Watch adds the nodes of a client. stop removes them.
func (n *Nodes) Watch(client Source) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	added := &client
	n.clients = append(n.clients, added)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.clients = slices.DeleteFunc(n.clients, func(c *Source) bool { return c == added })
	}
}

// Health returns what is known about each node. Of a node that several clients
// have it returns the worst: a gauge has one value. Timers are those of all clients.
func (n *Nodes) Health() []observe.NodeHealth {
	n.mu.Lock()
	clients := slices.Clone(n.clients)
	n.mu.Unlock()
	var all []observe.NodeHealth
	for _, c := range clients {
		for _, h := range (*c).Nodes() {
			h.Node = NodeLabel(h.Node)
			i := slices.IndexFunc(all, func(o observe.NodeHealth) bool { return o.Node == h.Node })
			if i < 0 {
				all = append(all, h)
				continue
			}
			all[i] = worse(all[i], h)
		}
	}
	return all
}

func worse(a, b observe.NodeHealth) observe.NodeHealth {
	a.Up = a.Up && b.Up
	a.Quarantined = a.Quarantined || b.Quarantined
	if b.ClockKnown && (!a.ClockKnown || b.Clock.Abs() > a.Clock.Abs()) {
		a.Clock, a.ClockKnown = b.Clock, true
	}
	a.Timers += b.Timers
	return a
}

// NodeLabel returns the label of a node.
func NodeLabel(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

// NoQuorum reports that a round failed because too few nodes could have granted:
// they did not answer, are quarantined, or have another membership. A round that
// another holder's lock ended is not one, nor one that its caller gave up.
func NoQuorum(end observe.RoundEnd) bool {
	if end.Won {
		return false
	}
	able := 0
	for i := range end.Nodes {
		if canGrant(&end.Nodes[i]) {
			able++
		}
	}
	return able < len(end.Nodes)/2+1
}

func canGrant(r *observe.Result) bool {
	if r.Err != nil {
		return r.Err == runner.ErrPending
	}
	return r.Reply.Status != node.Quarantined && r.Reply.Status != node.Misconfigured
}
