// Package redlatch is a distributed lock: one holder at a time for a name,
// among all the goroutines, processes and machines that ask the same nodes.
//
// A node is an independent place that can grant a lock. Packages
// redis/rueidis and redis/goredis make nodes of Redis servers, package sqlite
// of a file on this machine, package memory of nothing at all, for tests. With
// one node the lock is as good as that node. With several a majority of them
// decides, in the manner of Redlock, and a minority may fail.
//
// # Basics
//
// A Client is made once and used by everyone:
//
//	nodes, err := rueidis.Nodes("redis://a:6379", "redis://b:6379", "redis://c:6379")
//	locks, err := redlatch.New(nodes, redlatch.Options{})
//	defer locks.Close()
//
// Do waits for a lock, runs a function under it, and releases it. The
// function's context ends when the lock does, and the token goes to whatever
// the lock protects:
//
//	err = locks.Do(ctx, "orders/42", redlatch.LockOptions{},
//		func(ctx context.Context, lease *redlatch.Lease) error {
//			return store.Write(ctx, order, lease.Token())
//		})
//
// Lock and TryLock return the Lease itself. It is extended in the background
// until Release, and its Context ends when it is lost:
//
//	lease, err := locks.TryLock(ctx, "orders/42", redlatch.LockOptions{})
//	if errors.Is(err, redlatch.ErrHeld) {
//		return nil // somebody else is at it; err says who, and for how long yet
//	}
//
// A lease belongs to whoever has it, not to a goroutine, and outlives the
// context with which it was asked for. Locks are not re-entrant.
//
// # Guarantees
//
//  1. Exclusion. From the moment a lease is returned until its deadline no
//     other lease on the name is valid, if clocks run at the same rate within
//     a margin of 1 % of the time to live plus 2 ms, and no node forgets a
//     lock that it granted without the restart guard seeing it.
//  2. Loss is told in time. The lease's context ends at its deadline at the
//     latest, by a local timer that was set from the start of the last
//     confirmed round, never by the return of a network call. Its cause says
//     why: ErrLost, ErrReleased or ErrDetached.
//  3. Tokens only grow. If the attempt for a lease began after another was
//     acquired, its token is the higher one, even when a process was paused,
//     messages came late, clocks are wrong, or the earlier holder still
//     believes in its lock; again if no node forgets unseen.
//  4. No deadlock. A holder that crashes is gone after its time to live, one
//     that hangs after its MaxHold. Waiters that crash or freeze hold up
//     nobody for longer than about one and a half times WaiterLease, however
//     many they are.
//  5. Fault tolerance. With a majority of nodes answering, locks are
//     acquired, extended and released. A frozen, slow or dead minority costs
//     nothing where the others settle a round among themselves, and no more
//     than the node time limit where they do not. A node that lacks a lock
//     is given it again after a majority has extended it.
//  6. No ghosts. An attempt that failed or was cancelled is taken back on
//     every node that can be reached, whatever became of the caller's
//     context, and so are grants that come late.
//  7. Extension never creates and never steals. It lengthens what is still
//     ours, and never shortens it.
//  8. Order. Waiters are served in the order in which they came. A release
//     wakes one of them, and costs the same however many wait.
//
// # Caveats
//
// Nothing is promised beyond the deadline. A program that is stopped, by its
// scheduler, its hypervisor or a debugger, may wake up after it and write
// before it has looked at the context. Where that must do no harm, let the
// resource check the token: it keeps the highest that it has seen and refuses
// lower ones. Package fence is that side. A holder first claims the resource
// with its token, then reads, then writes.
//
// A node forgets a lock when it restarts without its data, is flushed, or is
// failed over to a replica that lacks the last writes. One such node is enough,
// where it was the one that two majorities had in common. The restart guard
// sees this by a marker that each node carries, and has the node sit out until
// whatever it forgot has run out: 32 s by default. It also refuses clients with
// another list of nodes, or other bounds. It is on for several Redis nodes and
// for Sentinel; see Options.Guard. It does not see that a server evicts or
// loses single keys, that its clock is set forward, or that it is put back to
// an earlier moment together with its memory.
//
// New nodes cannot be told from nodes that have lost everything. Several of
// them, or one with the guard on, are quarantined at first: redlatch init, or
// Init of package admin with Wait, marks them and waits until they are trusted. To trust
// them at once, with AssumeFresh, is for tests and first installations, and
// after an outage lets a second holder in.
//
// A single plain server is not guarded unless asked for, since nobody would
// carry on meanwhile. If it restarts without its data, it can grant what
// another still holds.
//
// A machine that was suspended has its leases ended within a tenth of a
// second after it wakes. That a virtual machine was paused cannot always be
// seen from inside it.
//
// Order is kept among clients of this package. Plain Redlock clients on the
// same key take it when they find it free; their release wakes nobody, and is
// found out by asking after a random delay. Order is by the nodes' clocks, so
// two callers that came within a round trip of each other may be served either
// way.
//
// With NoToken there is no token, and nothing stops a request that was thought
// lost and arrives after it was taken back: the lock it takes then runs out by
// its time to live.
//
// A lock is for those who ask for it. Whoever can write to the nodes can take
// or remove any lock.
//
// The file docs/guarantees.md says what each promise stands on, and what is left
// without it; docs/algorithm.md explains how all this comes about.
package redlatch
