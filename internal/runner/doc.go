// Package runner executes what package protocol decides: it sends requests to
// nodes, keeps timers, delivers notifications, and cleans up after callers that
// are gone. It decides nothing.
//
//   - A Cluster is the nodes as one client knows them: their health, their clocks,
//     their identities, the cluster parameters of their markers, and the work in
//     the background that Close waits for.
//   - A Claim runs one protocol.Claim: it hands in events, and does what follows.
//   - An Attempt is one caller that waits for a lock: it keeps the claim's time
//     until the lock is had, and waits in the local queue before that.
//
// What comes of a claim is reported to its Owner, in package redlatch, which has
// the errors and the observers. Package admin asks the members of a Cluster
// directly.
package runner
