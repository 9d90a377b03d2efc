// Package node is the contract of a place that can grant a lock: a Redis
// master, a file, a table.
//
// A lock user needs nothing of this: redlatch.Node and redlatch.Token are
// aliases of Node and Token. It is for authors of nodes, and for what looks at
// nodes one by one. Package nodetest, beside it, is the conformance suite that
// proves a node right.
//
// # Writing a node
//
// Implement Node, in this order, and run the suite after each step:
//
//  1. OpAcquire, OpExtend, OpRelease and OpInspect, without tokens: a name is
//     held by one value until it expires. Each operation is atomic, and
//     idempotent for its own value.
//  2. Tokens: the fence of a name, judged with Judge before every grant, raised
//     by every grant and release, and remembered for Request.Retention.
//     OpRepair and OpBreak go by the fence too.
//  3. Errors: one that wraps ErrUnsent only where the request had no effect and
//     will have none.
//  4. A queue, if the node can keep one: Request.Wait, Ticket, Barge, and
//     OpOffer; set Queues in the suite's harness.
//
// After that, whatever else the node can do, each by a small interface:
//
//   - Waker, if it can notify a waiter (Wakes in the harness).
//   - Lister, if it can enumerate its locks (Lists in the harness).
//   - Guarded, and Evidencer with it, if it can lose what it has acknowledged:
//     it keeps a marker, by which it notices, and is then quarantined.
//   - Identifier, if it can say which server it is; Prompt, if Do returns by
//     the deadline without help; Slow, if it needs a longer time limit.
//   - Examiner, if it can look for what endangers the locks on it.
//
// A node knows nothing of quorums: it answers one request at a time. It imports
// this package, and not package redlatch.
package node
