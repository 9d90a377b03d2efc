package etcd

import "github.com/redlatch/redlatch/store/casnode"

// Store returns the store of a node.
func Store(n *Node) casnode.Store { return n.store }

// Explain is explain.
var Explain = explain
