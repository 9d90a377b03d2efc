package memory

import "github.com/redlatch/redlatch/node"

// Copy returns a node with the same name, locks, fences and queues, and with
// nobody listening: what a server has that is started again from its files.
func (n *Node) Copy() *Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &Node{name: n.name, id: n.id, clock: n.clock, state: n.state.Clone(), listeners: map[int]func(node.Wake){}}
}

// Drop forgets a name as if there had never been anything of it. It reports
// whether somebody had it. A server does so that is short of memory and was
// configured to evict.
func (n *Node) Drop(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state.Evict(n.clock(), name)
}
