// Package fence is the resource's side of a lock: it refuses writers with a
// token lower than one that the resource has already seen, and readers with one
// lower than a writer's.
//
// A holder can always outlive its lease. A program that is stopped for longer
// than its lease, by its garbage collector, its scheduler or its hypervisor,
// continues and writes, and no lock can prevent that. The resource can: leases
// carry a token that only grows, so a late writer has a lower one than the next
// holder.
//
// # Basics
//
// A guard keeps the highest token per resource. There is one for a database
// (SQL), one for Redis, and one in the memory of a process (Gate); an HTTP
// server can use each of them (Middleware).
//
//	guard, err := fence.NewSQL(db, fence.PostgreSQL, nil)
//	err = guard.Create(ctx) // once: the table with the guard rows
//
// Do makes the check and the writes one transaction:
//
//	err = locks.Do(ctx, "orders/42", nil, func(ctx context.Context, l *redlatch.Lease) error {
//		return guard.Do(ctx, "orders/42", l.Token(), func(tx *sql.Tx) error {
//			_, err := tx.ExecContext(ctx, "UPDATE orders SET state = 'paid' WHERE id = 42")
//			return err
//		})
//	})
//	if errors.Is(err, fence.ErrStale) {
//		// The lock was lost and another has written since. Nothing of this was.
//	}
//
// A transaction of one's own begins with CheckTx. A table with a token column
// of its own needs no guard row and no transaction: see Column. Values in Redis
// are set by Redis.Set, other scripts there begin with RedisCheck. Over HTTP a
// Transport sends the token.
//
// # Readers and slots
//
// Readers, the holders of leases with redlatch.LockOptions.Shared, call
// CheckRead, CheckReadTx or redlatch_fence_read, or send WithReadToken, before
// they read. Then a writer that was paused, and has a lower token, cannot change
// what they rely on; and a reader that was paused is refused after a later
// writer. Tokens of readers have no order among themselves, and readers do not
// refuse each other. A lease after Lease.Downgrade is a reader's.
//
// With redlatch.LockOptions.Slots, each slot is a resource of its own: use a name
// such as fmt.Sprintf("printers/%d", lease.Slot()). Under one name for all slots,
// valid holders would refuse each other.
//
// # Guarantees
//
//  1. The rule. A token lower than the highest seen for a resource is refused
//     with a *StaleError. An equal one is accepted, since its holder may write
//     more than once. A higher one is accepted and remembered. A reader's token
//     is compared with the highest of a writer instead, and remembered for
//     writers alone.
//  2. Refused means not written. Check and write are one atomic step with
//     SQL.Do, SQL.CheckTx, Column, Redis.Set, Redis.Delete and scripts that
//     begin with RedisCheck.
//  3. Nothing is guessed. An error that is not ErrStale, such as a deadlock, a
//     serialization failure or a broken connection, is returned as it is, and
//     says nothing about the token.
//  4. Tokens stay exact: a BIGINT in SQL, 20 digits in Redis and in a
//     header, a string in JSON.
//
// For data this means: a stale holder never writes after the new holder has
// first claimed the resource. So a holder first claims the resource with its
// token, then reads, then writes. A holder that reads before it claims may read
// what a stale writer is about to change.
//
// # Caveats
//
// Check by itself, as in the Middleware, claims the resource and writes
// nothing. Later writes are not covered: the writer may be stopped between the
// two. If that matters, pass the token on to the store.
//
// A guard that forgets lets a stale writer in again: a Gate when its process
// ends, a Redis server that loses its data, evicts keys or fails over to a
// replica that lacks the last writes, a table restored from a backup. Keep the
// guard in the same store as the data: then both are lost or kept together.
//
// Guard rows and keys stay for ever by default: one small row per resource.
// Tokens are microseconds since 1970, so they show which rows are old enough to
// be deleted.
//
// A token must not be used to write after it was used by CheckRead, unless it was
// used by Check before: a lease that is downgraded does not write any more. SQL,
// Column and Redis would take such a write for the read that it follows.
//
// A token is no secret and no proof. A client that may write to a resource can
// shut all others out of it with a token far ahead; let only holders of the
// lock write.
package fence
