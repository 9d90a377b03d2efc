// Package fence is the resource's side of a lock: it refuses whoever comes
// with a token lower than one that the resource has already seen.
//
// A lease can always be outlived. A program that is stopped for longer than
// its lease, by its garbage collector, its scheduler or its hypervisor, wakes
// up and writes, and no lock can hold it back. The resource can: leases carry
// a token that only grows, so a late writer has a lower one than whoever came
// after it.
//
// # Basics
//
// A guard keeps the highest token per resource. There is one for a database
// (SQL), one for Redis, and one in the memory of a process (Gate); behind an
// HTTP server any of them will do (Middleware).
//
//	guard, err := fence.NewSQL(db, fence.PostgreSQL, fence.SQLOptions{})
//	err = guard.Create(ctx) // once: the table with the guard rows
//
// Do makes the check and the writes one transaction:
//
//	err = locks.Do(ctx, "orders/42", redlatch.LockOptions{}, func(ctx context.Context, l *redlatch.Lease) error {
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
// of its own needs no guard row and no transaction: see Column. Values in
// Redis are set by Redis.Set, other scripts there begin with RedisCheck. Over
// HTTP a Transport sends the token along.
//
// # Guarantees
//
//  1. The rule. A token lower than the highest seen for a resource is refused
//     with a *StaleError. An equal one is accepted, since its holder may write
//     more than once. A higher one is accepted and remembered.
//  2. Refused means not written. Check and write are one atomic step with
//     SQL.Do, SQL.CheckTx, Column, Redis.Set, Redis.Delete and scripts that
//     begin with RedisCheck, whatever comes in between.
//  3. Nothing is guessed. An error that is not ErrStale, such as a deadlock, a
//     serialization failure or a broken connection, is returned as it is, and
//     says nothing of the token.
//  4. Tokens stay exact: a BIGINT in SQL, 20 digits in Redis, decimal digits in
//     a header, a string in JSON.
//
// What follows from these for data: a stale holder never writes after the new
// holder has first touched the resource. So a holder first claims the resource
// with its token, then reads, then writes. One that reads before it has
// claimed may read what a stale writer is about to change.
//
// # Caveats
//
// Check by itself, as the Middleware does it, claims the resource and writes
// nothing. What is written after it is not covered: between the two the writer
// may be stopped. Where that matters, hand the token on to the store.
//
// A guard that forgets lets a stale writer in again: a Gate when its process
// ends, a Redis server that loses its data, evicts keys or fails over to a
// replica that lacks the last writes, a table restored from a backup. Guard
// the data where it is, and it is lost or kept together with its guard.
//
// Guard rows and keys stay for ever unless told otherwise: one small row per
// resource. Tokens are microseconds since 1970, so rows whose last holder is
// long dead can be told by them and deleted.
//
// A token is no secret and no proof. Whoever may write to a resource can shut
// everyone else out of it with a token far ahead; let only holders of the lock
// write.
package fence
