package sqlite

import (
	"time"

	"github.com/redlatch/redlatch"
)

// farFuture bounds times to live and retentions, so that no sum overflows.
const farFuture = 50 * 365 * 24 * time.Hour

// tx carries out one request inside a transaction. After an error it does
// nothing more, and the error is looked at once, at the end.
type tx struct {
	n    *Node
	req  redlatch.Request
	now  int64 // on the file's clock
	wall time.Time
	err  error

	// The name as it is in the file.
	row        int64 // 0 while it is not there
	value      string
	until      int64
	token      redlatch.Token // with which value was granted; 0 for none
	kept       redlatch.Token // the fence, even if its retention is over
	fenceUntil int64
	queued     bool // somebody stands in the queue, or did

	// What follows from it.
	held  bool
	fence redlatch.Token // 0 when its retention is over
	// least is what a token must be above: the fence, or where that is
	// over, the highest of all that are.
	least redlatch.Token
}

// carryOut does what the request asks, up to the commit.
func (n *Node) carryOut(req redlatch.Request) (redlatch.Reply, error) {
	t := &tx{n: n, req: req, now: n.time.elapsed(), wall: n.time.wall()}
	t.load()
	var status redlatch.Status
	switch req.Op {
	case redlatch.OpAcquire:
		status = t.acquire()
	case redlatch.OpExtend:
		status = t.extend()
	case redlatch.OpRelease:
		status = t.release()
	case redlatch.OpRepair:
		status = t.repair()
	case redlatch.OpBreak:
		status = t.breakUp()
	default:
		status = t.taken()
	}
	reply := redlatch.Reply{Status: status, Fence: t.fence, Now: t.wall, Rank: t.rank()}
	switch status {
	case redlatch.Held:
		reply.Value, reply.HolderToken, reply.Left = t.value, t.token, time.Duration(t.until-t.now)
	case redlatch.Stale:
		reply.Fence = t.least
	}
	if req.Op != redlatch.OpInspect {
		t.sweep()
	}
	return reply, t.err
}

// load reads the name, after what was written before the machine was last
// started has been dropped.
func (t *tx) load() {
	var boot string
	var floor int64
	name := []any{t.req.Name}
	t.scan(selectMeta, name, &boot, &floor, &t.queued)
	if t.err == nil && boot != t.n.time.boot {
		if t.req.Op == redlatch.OpInspect {
			t.queued = false
			return // it may not write, so it only looks away
		}
		t.reboot()
		t.scan(selectMeta, name, &boot, &floor, &t.queued)
	}
	var kept, token int64
	t.scan(selectLock, name, &t.row, &t.value, &t.until, &kept, &t.fenceUntil, &token)

	t.held = t.until > t.now
	t.kept, t.token = redlatch.Token(kept), redlatch.Token(token)
	t.fence, t.least = t.kept, t.kept
	if t.fenceUntil <= t.now {
		t.fence, t.least = 0, max(t.kept, redlatch.Token(floor))
	}
}

// store writes the name back.
func (t *tx) store() {
	switch {
	case t.row != 0 && !t.held && t.kept == 0:
		t.exec(deleteLock, t.row)
	case t.row != 0:
		t.exec(updateLock, t.row, t.value, t.until, int64(t.kept), t.fenceUntil, int64(t.token))
	case t.held || t.kept != 0:
		t.exec(insertLock, t.req.Name, t.value, t.until, int64(t.kept), t.fenceUntil, int64(t.token))
	}
}

func (t *tx) heldByUs() bool { return t.held && t.value == t.req.Value }

// taken says whether anybody has the name.
func (t *tx) taken() redlatch.Status {
	if t.held {
		return redlatch.Held
	}
	return redlatch.Absent
}

// hold gives the name to the request's value for its time to live from now.
func (t *tx) hold() {
	t.held, t.value, t.until = true, t.req.Value, t.now+int64(min(t.req.TTL, farFuture))
}

// grant is hold for a value that did not have the name, or asks for it again.
// What others raise the fence to after that is not its token.
func (t *tx) grant() {
	t.hold()
	t.token = t.req.Token
	t.raise()
}

func (t *tx) free() { t.held, t.value, t.token, t.until = false, "", 0, 0 }

// raise lifts the fence to the request's token and has it remembered for
// Retention from now. It lowers neither.
func (t *tx) raise() {
	if t.req.Token == 0 {
		return
	}
	t.fence = max(t.least, t.req.Token)
	t.kept, t.least = t.fence, t.fence
	t.fenceUntil = max(t.fenceUntil, t.now+int64(min(t.req.Retention, farFuture)))
}

func (t *tx) acquire() redlatch.Status {
	switch {
	case t.heldByUs():
		// Asking again after a lost reply must not end in a refusal; but a
		// proposal that was overtaken by a later one of ours must.
		if t.req.Token != 0 && t.req.Token < t.least {
			return redlatch.Stale
		}
		if t.judge() == redlatch.Ahead {
			return redlatch.Ahead
		}
	case t.held:
		t.join()
		return redlatch.Held
	case !t.isNext():
		t.join()
		return redlatch.Reserved
	default:
		if s := t.judge(); s != redlatch.Granted {
			t.renew()
			return s
		}
	}
	t.grant()
	t.store()
	t.leave()
	return redlatch.Granted
}

// judge holds the proposed token against the fence and the wall clock.
func (t *tx) judge() redlatch.Status {
	if t.req.Token == 0 {
		return redlatch.Granted
	}
	// Signed, since a window may reach back beyond 1970.
	token, clock, window := int64(t.req.Token), t.wall.UnixMicro(), t.req.Window.Microseconds()
	switch {
	case t.req.Token <= t.least:
		return redlatch.Stale
	case token < clock-window:
		// Even with no fence: a higher one may have been lost with the
		// power.
		return redlatch.Behind
	case token > max(clock+window, int64(t.least)+redlatch.TokenLeap):
		return redlatch.Ahead
	}
	return redlatch.Granted
}

func (t *tx) extend() redlatch.Status {
	if !t.heldByUs() {
		return t.taken()
	}
	t.hold()
	t.raise()
	t.store()
	return redlatch.Granted
}

func (t *tx) repair() redlatch.Status {
	switch {
	case t.heldByUs():
		return redlatch.Granted
	case t.held:
		return redlatch.Held
	case t.req.Token == t.least, !t.req.Until.IsZero() && t.wall.After(t.req.Until):
		return redlatch.Stale
	}
	t.grant()
	t.store()
	return redlatch.Granted
}

func (t *tx) release() redlatch.Status {
	status, verdict := t.taken(), t.judge()
	switch {
	case !t.heldByUs():
	case t.req.Once && (verdict == redlatch.Stale || verdict == redlatch.Ahead):
		return verdict
	default:
		status = redlatch.Granted
		t.free()
	}
	// Also where the name was ours: an acquire with a raised token may still
	// be under way, and would take the name again after we gave it up. One
	// that is ahead of the clock would be refused in any case, and must not
	// lift the fence by way of its release.
	if verdict != redlatch.Ahead {
		t.raise()
	}
	if status == redlatch.Granted || t.req.Token != 0 {
		t.store()
	}
	t.leave()
	return status
}

// exec and scan run a query unless one before it failed.

func (t *tx) exec(q query, args ...any) {
	if t.err == nil {
		t.err = t.n.exec(q, args...)
	}
}

func (t *tx) scan(q query, args []any, dest ...any) (found bool) {
	if t.err == nil {
		found, t.err = t.n.queryRow(q, args, dest...)
	}
	return found
}
