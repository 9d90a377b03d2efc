// Package redlatch provides a distributed lock: of all goroutines, processes
// and machines that use the same nodes, one at a time holds a name.
//
// A node is an independent store that can grant a lock: a Redis server, a table
// in PostgreSQL, MySQL or MariaDB, an etcd cluster, a ZooKeeper ensemble, a file
// on this machine, or memory, for tests. The packages under store make nodes.
// With one node, the lock is as reliable as that node. With several, a majority
// of them decides, as in Redlock, and a minority may fail.
//
// # Basics
//
// Make one Client per process and share it:
//
//	locks, err := redlatch.Open("redis://a:6379,redis://b:6379,redis://c:6379", nil)
//	defer locks.Close()
//
// Do waits for a lock, runs a function under it, and releases it. The
// function's context ends when the lock does. Pass the token to the resource
// that the lock protects, so that it can refuse a holder whose lock has
// expired:
//
//	err = locks.Do(ctx, "orders/42", nil,
//		func(ctx context.Context, lease *redlatch.Lease) error {
//			return store.Write(ctx, order, lease.Token())
//		})
//
// TryDo does the same if the lock is free, and skips the function if not:
//
//	ran, err := locks.TryDo(ctx, "cleanup", nil, cleanUp)
//
// Lock and TryLock return the Lease itself. The client extends it in the
// background until Release. Its Context ends when it is lost:
//
//	lease, err := locks.TryLock(ctx, "orders/42", nil)
//	if errors.Is(err, redlatch.ErrHeld) {
//		return nil // another client holds it; err says which, and when it expires
//	}
//
// A lease is not tied to a goroutine: any goroutine may use or release it. It
// is not tied to the context of Lock or TryLock either: it stays valid after
// that context has ended. Locks are not re-entrant.
//
// LockAll acquires the locks of several names together. Lead runs a function in
// one process at a time, the leader, and waits for the lock again when that
// process loses it.
//
// # Guarantees
//
//  1. Exclusion. From the moment a lease is returned until its deadline, no
//     other lease on the name is valid. This assumes that clocks run at the
//     same rate, within 1 % of the time to live plus 2 ms, and that no node
//     forgets a lock that it granted without the restart guard seeing it.
//  2. Loss is reported in time. The lease's context ends at its deadline at
//     the latest. A local timer ends it, not the return of a network call; the
//     timer is set from the start of the last confirmed round. The context's
//     cause says why: ErrLost, ErrReleased or ErrDetached.
//  3. Tokens only grow. If the attempt for a lease began after another lease
//     was acquired, its token is the higher one. This holds when a process was
//     paused, when messages arrive late, when clocks show the wrong time, and
//     when the earlier holder still believes that it holds the lock. It
//     assumes that no node forgets unseen.
//  4. No deadlock. The lock of a crashed holder is free after its time to
//     live, that of a hanging holder after its MaxHold. Crashed or frozen
//     waiters delay the others by about a second and a half, and by a few
//     seconds at most, however many they are.
//  5. Fault tolerance. Locks are acquired, extended and released while a
//     majority of nodes answers. A frozen, slow or dead minority costs no time
//     if the other nodes decide the round, and at most the node time limit if
//     they do not. A node that lacks a lock gets it back after a majority has
//     extended it.
//  6. No orphaned keys. What a failed or cancelled attempt was granted is
//     undone on every node that can be reached, even after the caller's
//     context has ended. So are grants that arrive late.
//  7. Extension never creates a lock, never steals one, and never shortens
//     one. It lengthens a lock that is still ours.
//  8. Order. Waiters are served in the order in which they came. A release
//     notifies two waiters at most, and costs the same however many wait. If
//     waiters did not ask in time, more of those behind them are notified.
//
// # Caveats
//
// Nothing is promised after the deadline. A scheduler, a hypervisor or a
// debugger can stop a program, and the program may resume after the deadline
// and write before it looks at its context. If such a write does harm, let the
// resource check the token: it keeps the highest token that it has seen and
// refuses lower ones. Package fence does this. A holder first claims the
// resource with its token, then reads, then writes.
//
// A node forgets a lock when it restarts without its data, when it is flushed,
// and when it fails over to a replica that lacks the last writes. One such node
// is enough to allow two holders, if two majorities overlap in it. The restart
// guard notices this by a marker on each node, and quarantines the node until
// every lock that it may have forgotten has expired, and every token that it may
// have granted is too old to be used again: 32 s by default. The guard
// also refuses clients with another membership or other cluster parameters. It
// is on for several nodes, and for one behind which another server may take its
// place: Sentinel, a database, etcd, ZooKeeper. It is off if a file or memory is
// among the nodes. See Options.Guard. It does not
// notice that a server evicts or loses single keys, that a server's clock is set
// forward, or that a server is reset to an earlier moment together with its memory.
//
// New nodes look like nodes that have lost all data. Several new nodes, or one
// with the guard on, are therefore quarantined at first. redlatch init, or Init
// of package admin with Wait, marks them and waits until they are trusted.
// AssumeFresh trusts them at once: that is for tests and first installations.
// After an outage it can let in a second holder.
//
// The guard is off for a single plain Redis server and for a single Redis Cluster,
// because no other node could grant locks during the quarantine. If that server
// restarts without its data, or a shard fails over, it can grant a lock that another
// client still holds.
//
// When a suspended machine wakes, its leases end within a tenth of a second. A
// virtual machine cannot always notice that it was paused.
//
// Clients of this package keep the order among themselves. Foreign Redlock
// clients on the same key take it when they find it free. Their release
// notifies nobody: waiters discover it when they ask again, after a random
// delay. The order follows the nodes' clocks, so two callers that came within a
// round trip of each other may be served in either order.
//
// The lock is advisory. A client that can write to the nodes can take or remove
// any lock.
//
// docs/guarantees.md says what each guarantee assumes and what is left if the
// assumption fails. docs/algorithm.md explains the protocol.
package redlatch
