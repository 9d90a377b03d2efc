// Package casnode makes a node of a store that can compare and swap. The store
// keeps rows and knows no rules of locks.
//
// # How it works
//
// All that a node knows about a name is one row, and in a Placer a row for each
// waiter: see queue.go. A request is a read and a write:
//
//	seen := Read(name)             // row, marker, clock and identity of the server
//	row  := the rules, on a copy   // a reply; the row if it changes; the wakes
//	Swap(seen, row, wakes)         // if nothing of seen has changed; else again
//
// So a request is atomic as of its Read: nothing happened to the name in between, and
// all times count from then. (Without a Read, as of its write: see Stamper.) A client
// that freezes between the two holds no lock of the store and blocks nobody. Nothing
// depends on a session, so a pooler may give each statement another connection. A
// request that changes nothing is one Read.
//
// # What a store has to do
//
// A Row is a name, a version and a state. The store looks into none of them. It
// keeps the three together, and promises four things:
//
//   - Read returns a Snapshot: the row of a name, the row of the marker, the
//     server's identity and its clock, all as of one moment after the call began.
//     If a client has been granted a lock before the call, Read shows it: a copy
//     that may lag behind, such as a replica, is not read.
//   - Swap writes a row, in one statement or transaction that verifies that row,
//     marker and identity are those that were read. "There is no row" is verified
//     too: of two inserts one fails.
//   - A write that was acknowledged is not forgotten. Where that can happen, by a
//     failover or a loss of data, the identity changes with it.
//   - The clock, if there is one, is one for all clients: the server's. It is not
//     stepped: a step forward ends locks early, and a step back makes them last
//     longer. A store without a clock leaves Snapshot.Now zero, and keeps fences:
//     see Snapshot.KeepsFences.
//
// # What breaks otherwise
//
//   - Swap does not compare the row: two clients that read a free name both get it.
//   - Swap does not compare the marker or the identity: a failover between Read and
//     Swap gives a lock to a second holder. The replica that takes over may lack
//     what the primary granted, and shows the row as it was read.
//   - Versions are counted: the lost primary and its replica both write version
//     n+1, and a row that was removed starts at 1 again. An old client then
//     overwrites what it never saw. So the versions are random, and this package
//     makes them; the store keeps what it is given.
//   - Read returns parts of two moments: a new row with an old marker passes for
//     one of a server that is trusted.
//
// Package casnodetest checks a store for what shows without a failover, a crash or a
// partition. docs/store-authors.md lists what it does not see.
//
// # The marker
//
// The marker is a row like the others, under MarkerName, which is no name of a
// lock. It says which server wrote it. A server whose identity is another one, or
// without a marker, is quarantined until every lock that it may have forgotten has
// expired, and every token is outside the window. A store that never forgets returns
// the same identity for ever, and works the same way.
// (A backup that is restored forgets, and brings back an identity that is kept in
// the data.)
//
// # What a store can do besides
//
// A store declares more abilities by implementing Preparer, Sweeper, Hearer or Ringer,
// Stamper, Placer and Timers. With a Stamper, a request that nobody contends for is one
// statement: the node remembers what it wrote last, and writes without a Read. The
// statement compares all that was remembered, and the clock. The times in the row count
// from the statement, so the row never expires before its holder believes so.
package casnode
