// Package runner executes what package protocol decides: it sends requests to
// nodes, runs timers, delivers notifications, and cleans up after callers that
// have gone. It decides nothing: what it has seen of nodes, their health, clocks,
// markers and records, it passes to functions of protocol. What it chooses is how
// requests are sent: on which goroutine, and how often a release that failed is
// repeated.
//
//   - A Cluster is the nodes as one client knows them: their health, their clocks,
//     their identities, the cluster parameters of their markers, and the work in
//     the background that Close waits for.
//   - A Claim runs one protocol.Claim: it passes events to it, and does what they
//     make ready.
//   - An Attempt is one caller that wants a lock: it waits in the local queue, and
//     then runs the claim's timer until the caller has the lock.
//
// A name is what the caller gave; errors, logs and observers have it. A key is that
// name after the client's prefix: nodes have it, as node.Request.Name, and so do
// local queues. A Claim and an Attempt know their key, an Owner knows its name.
//
// A claim notifies its Owner, in package redlatch, which has the errors and the
// observers. Package admin asks the members of a Cluster directly.
package runner
