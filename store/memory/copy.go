package memory

import "github.com/redlatch/redlatch/node"

// Copy returns a node with the same name, locks, fences and queues, and without
// listeners: the state of a server that is restarted from its files.
func (n *Node) Copy() *Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &Node{name: n.name, id: n.id, clock: n.clock, state: n.state.Clone(), listeners: map[int]func(node.Wake){}}
}

// Drop forgets everything about a name, as a server does that is short of
// memory and evicts keys. It reports whether the name was held.
func (n *Node) Drop(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state.Evict(n.clock(), name)
}
