package sqlite

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// placeBehind is how long a place behind the head is kept without being
// renewed. It delays nobody before it is the head, and waiters must keep their
// order on a machine that is busy with a crowd of them.
const placeBehind = 10 * time.Second

const (
	// ?1 name, ?2 now
	selectHead query = `
		SELECT ticket, value, lapses FROM waiter WHERE name = ?1 AND lapses > ?2
		ORDER BY ticket, value LIMIT 1`

	// ?1 name, ?2 now, ?3 value
	selectTicket query = `SELECT ticket FROM waiter WHERE name = ?1 AND value = ?3 AND lapses > ?2`

	// ?1 name, ?2 now, ?3 value, ?4 ticket
	countBefore query = `
		SELECT count(*) FROM waiter
		WHERE name = ?1 AND lapses > ?2 AND (ticket, value) < (?4, ?3)`

	// ?1 name, ?2 value, ?3 ticket, ?4 lapses. A second ticket does not move
	// a waiter.
	upsertWaiter query = `
		INSERT INTO waiter (name, value, ticket, lapses) VALUES (?1, ?2, ?3, ?4)
		ON CONFLICT (name, value) DO UPDATE SET lapses = excluded.lapses`

	// ?1 name, ?2 value, ?3 lapses
	updateWaiter query = `UPDATE waiter SET lapses = ?3 WHERE name = ?1 AND value = ?2`

	// ?1 name, ?2 value, ?3 ticket, ?4 lapses
	hurryBefore query = `
		UPDATE waiter SET lapses = ?4
		WHERE name = ?1 AND lapses > ?4 AND (ticket, value) < (?3, ?2)`

	// ?1 name, ?2 value
	deleteWaiter query = `DELETE FROM waiter WHERE name = ?1 AND value = ?2`

	// ?1 name, ?2 now
	countLapsed query = `SELECT count(*) FROM waiter WHERE name = ?1 AND lapses <= ?2`

	// ?1 name, ?2 now
	deleteLapsed query = `DELETE FROM waiter WHERE name = ?1 AND lapses <= ?2`
)

// isNext reports whether we may take a free name: nobody waits, or we are the
// head, or would be if we joined, or we barge.
func (t *tx) isNext() bool {
	if !t.queued || t.req.Barge {
		return true
	}
	var gone int
	t.scan(countLapsed, []any{t.req.Name, t.now}, &gone)
	t.exec(deleteLapsed, t.req.Name, t.now)
	var ticket, lapses int64
	var value string
	if !t.scan(selectHead, []any{t.req.Name, t.now}, &ticket, &value, &lapses) {
		t.queued = false
		return true
	}
	if value == t.req.Value {
		return true
	}
	most := t.now + int64(node.WaiterLease)
	if lapses > most {
		// It is the head now, and has that long to take a free name.
		t.exec(updateWaiter, t.req.Name, value, most)
	}
	if t.req.Wait && gone > 0 {
		// One waiter did not come, and others may be gone with it. So all
		// places before us now last that long, and lapse together. A waiter
		// that is alive asks within that time and keeps its place. This is done
		// only when one is missing: otherwise every live waiter would have to
		// write at every hand-over, and in a crowd some would be late.
		t.exec(hurryBefore, t.req.Name, t.req.Value, t.req.Ticket, most)
	}
	ahead := t.req.Ticket < ticket || t.req.Ticket == ticket && t.req.Value < value
	return t.req.Wait && ahead && t.rank() == 0
}

// join queues us or renews our place, if we want to wait.
func (t *tx) join() {
	if !t.req.Wait {
		return
	}
	if t.queued {
		t.exec(deleteLapsed, t.req.Name, t.now)
	}
	t.exec(upsertWaiter, t.req.Name, t.req.Value, t.req.Ticket, t.now+int64(node.WaiterLease))
	t.queued = true
	var ticket, lapses int64
	var first string
	if t.scan(selectHead, []any{t.req.Name, t.now}, &ticket, &first, &lapses) && first != t.req.Value {
		t.exec(updateWaiter, t.req.Name, t.req.Value, t.now+int64(placeBehind))
	}
}

// renew keeps our place in the queue, if we have one and want to wait.
func (t *tx) renew() {
	if t.req.Wait && t.queued {
		t.exec(updateWaiter, t.req.Name, t.req.Value, t.now+int64(node.WaiterLease))
	}
}

func (t *tx) leave() {
	if t.queued {
		t.exec(deleteWaiter, t.req.Name, t.req.Value)
	}
}

// rank returns our place in the queue, 1 for the head, or 0.
func (t *tx) rank() int {
	if !t.queued {
		return 0
	}
	var ticket int64
	if !t.scan(selectTicket, []any{t.req.Name, t.now, t.req.Value}, &ticket) {
		return 0
	}
	var before int
	t.scan(countBefore, []any{t.req.Name, t.now, t.req.Value, ticket}, &before)
	return before + 1
}
