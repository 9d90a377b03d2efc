package sqlite

import (
	"math"
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
		SELECT value, kind, lapses FROM waiter WHERE name = ?1 AND lapses > ?2
		ORDER BY ticket, kind, value LIMIT 1`

	// ?1 name, ?2 now, ?3 value
	selectTicket query = `SELECT ticket, kind FROM waiter WHERE name = ?1 AND value = ?3 AND lapses > ?2`

	// ?1 name, ?2 now, ?3 value, ?4 ticket, ?5 kind
	countBefore query = `
		SELECT count(*) FROM waiter
		WHERE name = ?1 AND lapses > ?2 AND (ticket, kind, value) < (?4, ?5, ?3)`

	// ?1 name, ?2 now, ?3 value, ?4 ticket, ?5 kind. One more than
	// node.MaxSlots, as text: see batchLimit.
	selectBefore query = `
		SELECT kind FROM waiter
		WHERE name = ?1 AND lapses > ?2 AND (ticket, kind, value) < (?4, ?5, ?3)
		ORDER BY ticket, kind, value LIMIT 65`

	// ?1 name, ?2 value, ?3 ticket, ?4 lapses, ?5 kind. A second ticket does
	// not move a waiter.
	upsertWaiter query = `
		INSERT INTO waiter (name, value, ticket, lapses, kind) VALUES (?1, ?2, ?3, ?4, ?5)
		ON CONFLICT (name, value) DO UPDATE SET lapses = excluded.lapses`

	// ?1 name, ?2 value, ?3 lapses
	updateWaiter query = `UPDATE waiter SET lapses = ?3 WHERE name = ?1 AND value = ?2`

	// ?1 name, ?2 value, ?3 ticket, ?4 lapses, ?5 kind
	hurryBefore query = `
		UPDATE waiter SET lapses = ?4
		WHERE name = ?1 AND lapses > ?4 AND (ticket, kind, value) < (?3, ?5, ?2)`

	// ?1 name, ?2 value
	deleteWaiter query = `DELETE FROM waiter WHERE name = ?1 AND value = ?2`

	// ?1 name, ?2 value, ?3 kind
	withdrawWaiter query = `DELETE FROM waiter WHERE name = ?1 AND value = ?2 AND kind IN ('', ?3)`

	// ?1 name, ?2 now
	countLapsed query = `SELECT count(*) FROM waiter WHERE name = ?1 AND lapses <= ?2`

	// ?1 name, ?2 now
	deleteLapsed query = `DELETE FROM waiter WHERE name = ?1 AND lapses <= ?2`
)

// head is the first waiter.
type head struct {
	node.Waiter
	lapses int64
}

func (t *tx) head() (head, bool) {
	var h head
	var kind string
	if !t.scan(selectHead, []any{t.req.Name, t.now}, &h.Value, &kind, &h.lapses) {
		return h, false
	}
	share, err := parseKind(kind)
	if t.err == nil {
		t.err = err
	}
	h.Share = share
	return h, t.err == nil
}

// turn returns Granted if we may take what is free: it is our turn, or we barge.
// Otherwise it returns why not.
func (t *tx) turn() node.Status {
	if !t.queued || t.req.Barge {
		return node.Granted
	}
	var gone int
	t.scan(countLapsed, []any{t.req.Name, t.now}, &gone)
	t.exec(deleteLapsed, t.req.Name, t.now)
	first, found := t.head()
	if !found {
		t.queued = false
		return node.Granted
	}
	if t.req.Wait && first.Value == t.req.Value || t.isNext() {
		return node.Granted
	}
	most := t.now + int64(node.WaiterLease)
	if first.lapses > most {
		// It is the head now, and has that long to take what is free, or to
		// show that it still waits for more.
		t.exec(updateWaiter, t.req.Name, first.Value, most)
	}
	if t.req.Wait && gone > 0 {
		// One waiter did not come, and others may be gone with it. So all
		// places before us now last that long, and lapse together. A waiter
		// that is alive asks within that time and keeps its place. This is done
		// only when one is missing: otherwise every live waiter would have to
		// write at every hand-over, and in a crowd some would be late.
		t.exec(hurryBefore, t.req.Name, t.req.Value, t.req.Ticket, most, t.req.Kind())
	}
	return t.blocked(first)
}

// blocked returns what a request is refused with that has to let the head go
// first.
func (t *tx) blocked(first head) node.Status {
	if room := t.holders.Room(-1); room.Take(first.Share) {
		return node.Reserved
	}
	return node.Held
}

// errEnough ends the reading of rows.
const errEnough = fault("has more")

// isNext reports whether there is room for us, and for all waiters before us: a
// request that does not wait is behind all of them.
func (t *tx) isNext() bool {
	ticket, kind := int64(math.MaxInt64), "~" // above all
	if t.req.Wait {
		ticket, kind = t.req.Ticket, t.req.Kind()
		t.scan(selectTicket, []any{t.req.Name, t.now, t.req.Value}, &ticket, &kind)
	}
	room, before := t.holders.Room(-1), 0
	t.each(selectBefore, []any{t.req.Name, t.now, t.req.Value, ticket, kind}, func(scan func(...any) error) error {
		var kind string
		if err := scan(&kind); err != nil {
			return err
		}
		share, err := parseKind(kind)
		if err == nil && (before == node.MaxSlots || !room.Take(share)) {
			err = errEnough
		}
		before++
		return err
	})
	if t.err == errEnough {
		t.err = nil
		return false
	}
	return room.Take(t.req.Share)
}

// join queues us or renews our place, if we want to wait.
func (t *tx) join() {
	if !t.req.Wait {
		return
	}
	if t.queued {
		t.exec(deleteLapsed, t.req.Name, t.now)
	}
	t.exec(upsertWaiter, t.req.Name, t.req.Value, t.req.Ticket, t.now+int64(node.WaiterLease), t.req.Kind())
	t.queued = true
	if first, found := t.head(); found && first.Value != t.req.Value {
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

// withdraw removes our place, if it is of our kind or for the whole name.
func (t *tx) withdraw() {
	if t.queued {
		t.exec(withdrawWaiter, t.req.Name, t.req.Value, t.req.Kind())
	}
}

// rank returns our place in the queue, 1 for the head, or 0.
func (t *tx) rank() int {
	if !t.queued {
		return 0
	}
	var ticket int64
	var kind string
	if !t.scan(selectTicket, []any{t.req.Name, t.now, t.req.Value}, &ticket, &kind) {
		return 0
	}
	var before int
	t.scan(countBefore, []any{t.req.Name, t.now, t.req.Value, ticket, kind}, &before)
	return before + 1
}
