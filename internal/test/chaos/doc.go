// Package chaos breaks a quorum of real servers under contending clients, and
// judges what the clients saw.
//
// A run starts servers and client processes. Each client reaches each server
// over a proxy of its own. A nemesis, drawn from a seed, injects faults of the
// chosen families and heals them. Clients lock as writers, as readers and in
// slots, read and write a fenced resource in a database, extend, downgrade and
// release, and report every step on the clock that all processes of a machine
// share. Afterwards everything is healed,
// every client must get a lock again, and the servers are checked for
// leftovers.
//
// # What is judged
//
//  1. No two leases on one name are valid at once, unless both are readers', or
//     for different slots. There are never more than there are slots. Nor is a
//     lock given to another while it is kept.
//  2. Tokens grow: a lease that was granted after another has the higher one.
//     Readers have no order among themselves.
//  3. The resource accepts no stale write and no stale read, and no update is
//     lost.
//  4. No lock is left on any server when its time is over.
//  5. After the faults every client gets a lock again.
//  6. An extension is not confirmed after another lease was given that it would
//     exclude.
//  7. The resource refuses no valid holder.
//  8. In a run without faults every request succeeds and no lease is lost,
//     unless the machine stalls for longer than a lease lasts.
//
// Families of faults are within the assumptions of docs/guarantees.md or beyond
// them. A violation of 1, 2, 6 or 7 is excused only if a fault beyond them was
// active at that time; it is counted all the same. Violations of 3, 4 and 5 are
// never excused.
package chaos
