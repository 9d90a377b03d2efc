// Package runner executes what package protocol decides: it sends requests to
// nodes, runs timers, delivers notifications, and cleans up after callers that
// have gone. What exclusion rests on, protocol decides: the runner passes what it
// has seen of nodes, their health, clocks, servers, markers and records, to a Claim or
// to functions. It decides for itself only this:
//
//   - Time: how long it waits for a node, and so until when, by the node's own clock, a
//     marker may be written; how long no marking begins after one that found nothing to
//     mark; how long a wait for a quarantine does not count; and that the time limit of a
//     release stands still while requests wait for a connection of the program's own.
//   - Memory: how many releases and early notifications it stores, and when it drops
//     some: the oldest, or those whose keys have expired.
//   - Order: on which goroutine a request is sent and its answer handled, how many are in
//     flight, and that one marking is at a time. So it knows whether a node executes a
//     request after those before (Claim.inOrder).
//   - Repetition: how often a release that failed is sent again, and when.
//   - What an answer shows of the node: whether an error means that it fails
//     (Member.end) or has not got the request (faultOf); what the clocks that were seen
//     show together, and whether any was (nodeclocks.go); that it is in service again
//     (mark.go).
//   - What is its own: whether a holder or a waiter that a node names is a claim that
//     this client has given up (undo.go).
//   - The local queues: which callers share one, and that who does not wait needs none.
//     Who is let in, protocol.Line decides.
//   - Settings and errors: which settings contradict each other, or the nodes, and what
//     an error says.
//
// It is made of these:
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
