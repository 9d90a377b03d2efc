// Package node is the contract of a node: a store that can grant a lock, such
// as a Redis master, a database, a cluster of etcd or ZooKeeper, or a file.
//
// A lock user does not need it: redlatch.Node and redlatch.Token are aliases of
// Node and Token. It is for authors of nodes, and for programs that use nodes
// one by one. Package nodetest, beside it, is the conformance suite for nodes.
//
// # Writing a node
//
// Implement Node in this order, and run the suite after each step: more of its
// claims hold each time.
//
//  1. OpAcquire, OpExtend, OpRelease and OpInspect, without tokens: a name is
//     held by one value until it expires. Each operation is atomic, and
//     idempotent for its own value.
//  2. Tokens: each name has a fence. Judge compares a token with it before every
//     grant. Every grant and release raises it. The node remembers it for
//     Request.Retention. OpRepair raises the fence, and is not judged by it. OpBreak
//     is judged by it, and raises it.
//  3. Errors: one wraps ErrUnsent only if the request had no effect and will
//     have none.
//  4. Shares: Shared and Slotted holders beside each other. Mode has the
//     rules. Readers' tokens are judged by JudgeShared, and the node keeps a floor
//     besides the fence.
//  5. Records of what is completed: Recorder.
//  6. A queue: Request.Wait, Ticket and OpYield.
//  7. Lister: it enumerates the node's locks.
//
// After that, implement a small interface for each other ability of the node:
// abilities.go lists them, and what is lost without each. A node that can lose what it
// has acknowledged must be Guarded: it keeps a marker, by which it notices the loss,
// and is then quarantined. One that notifies its waiters is a Waker: set Wakes in the
// suite's harness.
//
// A node knows nothing about quorums: it answers one request at a time. It
// imports this package, and not package redlatch.
package node
