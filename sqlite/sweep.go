package sqlite

import "math/rand/v2"

// Every so many requests, one looks at a batch of rows somewhere in the file
// and deletes those that are over. A place chosen at random needs no index on
// expiry, which every grant would have to write, and no place remembered
// between processes that live for one request. With these numbers four rows
// are looked at for every one that can be added, so that in the long run the
// dead are fewer than the living.
const (
	sweepEvery = 16
	sweepBatch = 64
	batchLimit = `ORDER BY row LIMIT 64` // as text, since SQLite compiles a bound limit anew each time
)

const (
	selectLockSpan   query = `SELECT coalesce(min(row), 0), coalesce(max(row), 0) FROM lock`
	selectWaiterSpan query = `SELECT coalesce(min(row), 0), coalesce(max(row), 0) FROM waiter`

	// ?1 first row, ?2 now
	selectDeadFence query = `
		SELECT coalesce(max(fence), -1) FROM (SELECT * FROM lock WHERE row >= ?1 ` + batchLimit + `)
		WHERE until <= ?2 AND fence_until <= ?2`
	deleteDeadLocks query = `
		DELETE FROM lock WHERE until <= ?2 AND fence_until <= ?2
		AND row IN (SELECT row FROM lock WHERE row >= ?1 ` + batchLimit + `)`
	deleteDeadWaiters query = `
		DELETE FROM waiter WHERE lapses <= ?2
		AND row IN (SELECT row FROM waiter WHERE row >= ?1 ` + batchLimit + `)`

	// ?1 token
	raiseFloor query = `UPDATE meta SET floor = ?1 WHERE floor < ?1`
)

// sweep deletes some of what is over, now and then.
func (t *tx) sweep() {
	if rand.N(sweepEvery) == 0 {
		t.sweepLocks()
		t.sweepWaiters()
	}
}

func (t *tx) sweepLocks() {
	batch := []any{t.pick(selectLockSpan), t.now}
	fence := int64(-1)
	t.scan(selectDeadFence, batch, &fence)
	if fence < 0 {
		return
	}
	// A fence that is forgotten goes on to bind as part of the floor.
	t.exec(raiseFloor, fence)
	t.exec(deleteDeadLocks, batch...)
}

func (t *tx) sweepWaiters() {
	t.exec(deleteDeadWaiters, t.pick(selectWaiterSpan), t.now)
}

// pick returns a row at which to begin. It may lie before the first, by a
// batch, so that the first is looked at as often as any other.
func (t *tx) pick(span query) int64 {
	var first, last int64
	t.scan(span, nil, &first, &last)
	return first - sweepBatch + rand.Int64N(last-first+1+sweepBatch)
}

const (
	// ?1 boot
	adoptBoot query = `
		UPDATE meta SET boot = ?1, floor = max(floor, (SELECT coalesce(max(fence), 0) FROM lock))`
	deleteAllLocks   query = `DELETE FROM lock`
	deleteAllWaiters query = `DELETE FROM waiter`
)

// reboot empties the file: its times are on the clock of a boot that is over,
// and so are the processes that held anything.
func (t *tx) reboot() {
	t.exec(adoptBoot, t.n.time.boot)
	t.exec(deleteAllLocks)
	t.exec(deleteAllWaiters)
}
