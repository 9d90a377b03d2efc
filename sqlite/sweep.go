package sqlite

import (
	"math/rand/v2"

	"github.com/redlatch/redlatch/node"
)

// One in sweepEvery requests checks a batch of rows at a random place in the
// file, and deletes those that are over. A random place needs no index on
// expiry, which every grant would have to write, and no position shared between
// processes that live for one request. With these numbers four rows are checked
// for every row that can be added, so that in the long run fewer rows are dead
// than alive.
const (
	sweepEvery = 16
	sweepBatch = 64
	batchLimit = `ORDER BY row LIMIT 64` // as text, because SQLite compiles a limit that is a parameter each time
)

const (
	selectLockSpan   query = `SELECT coalesce(min(row), 0), coalesce(max(row), 0) FROM lock`
	selectWaiterSpan query = `SELECT coalesce(min(row), 0), coalesce(max(row), 0) FROM waiter`
	selectHolderSpan query = `SELECT coalesce(min(row), 0), coalesce(max(row), 0) FROM holder`

	// ?1 first row, ?2 now
	selectDeadFence query = `
		SELECT coalesce(max(fence), -1) FROM (SELECT * FROM lock WHERE row >= ?1 ` + batchLimit + `)
		WHERE until <= ?2 AND kept_until <= ?2`
	deleteDeadLocks query = `
		DELETE FROM lock WHERE until <= ?2 AND kept_until <= ?2
		AND row IN (SELECT row FROM lock WHERE row >= ?1 ` + batchLimit + `)`
	deleteDeadWaiters query = `
		DELETE FROM waiter WHERE lapses <= ?2
		AND row IN (SELECT row FROM waiter WHERE row >= ?1 ` + batchLimit + `)`
	deleteDeadHolders query = `
		DELETE FROM holder WHERE until <= ?2
		AND row IN (SELECT row FROM holder WHERE row >= ?1 ` + batchLimit + `)`

	// ?1 token
	raiseFloor query = `UPDATE meta SET floor = ?1 WHERE floor < ?1`
)

// sweep deletes some rows that are over, in some requests. Those that are about
// one exclusive lock add no holders, and need not look for any.
func (t *tx) sweep() {
	if rand.N(sweepEvery) != 0 {
		return
	}
	t.sweepLocks()
	t.sweepWaiters()
	if t.several || t.req.Mode != node.Exclusive {
		t.sweepHolders()
	}
}

func (t *tx) sweepLocks() {
	batch := []any{t.pick(selectLockSpan), t.now}
	fence := int64(-1)
	t.scan(selectDeadFence, batch, &fence)
	if fence < 0 {
		return
	}
	// A fence that is forgotten stays in force as part of the floor.
	t.exec(raiseFloor, fence)
	t.exec(deleteDeadLocks, batch...)
}

func (t *tx) sweepWaiters() {
	t.exec(deleteDeadWaiters, t.pick(selectWaiterSpan), t.now)
}

func (t *tx) sweepHolders() {
	t.exec(deleteDeadHolders, t.pick(selectHolderSpan), t.now)
}

// pick returns a row at which to begin. It may be up to a batch before the
// first row, so that the first row is checked as often as any other.
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

// reboot empties the file: its times are on the clock of an earlier boot, and
// its holders ended with that boot.
func (t *tx) reboot() {
	t.exec(adoptBoot, t.n.time.boot)
	t.exec(deleteAllLocks)
	t.exec(deleteAllWaiters)
}
