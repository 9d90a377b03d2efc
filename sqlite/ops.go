package sqlite

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// farFuture limits times to live and retentions, so that no sum overflows.
const farFuture = 50 * 365 * 24 * time.Hour

// tx executes one request inside a transaction. After an error it does nothing
// more, and the error is checked once, at the end.
type tx struct {
	n    *Node
	req  node.Request
	now  int64 // on the file's clock
	wall time.Time
	err  error

	// The name as it is in the file.
	row        int64 // 0 while it is not there
	value      string
	until      int64
	token      node.Token // the token that value was granted with; 0 for none
	kept       node.Token // the fence, even if its retention is over
	fenceUntil int64
	queued     bool // somebody is in the queue, or was

	// What follows from these.
	held  bool
	fence node.Token // 0 when its retention is over
	// least is what a token must be above: the fence or, if its retention is
	// over, the highest of all such fences.
	least node.Token
}

// carryOut executes the request, up to the commit.
func (n *Node) carryOut(req node.Request) (node.Reply, error) {
	t := &tx{n: n, req: req, now: n.time.elapsed(), wall: n.time.wall()}
	t.load()
	var status node.Status
	switch req.Op {
	case node.OpAcquire:
		status = t.acquire()
	case node.OpExtend:
		status = t.extend()
	case node.OpRelease:
		status = t.release()
	case node.OpRepair:
		status = t.repair()
	case node.OpBreak:
		status = t.breakUp()
	default:
		status = t.taken()
	}
	reply := node.Reply{Status: status, Fence: t.fence, Now: t.wall, Rank: t.rank()}
	switch status {
	case node.Held:
		reply.Value, reply.HolderToken, reply.Left = t.value, t.token, time.Duration(t.until-t.now)
	case node.Stale:
		reply.Fence = t.least
	}
	if req.Op != node.OpInspect {
		t.sweep()
	}
	return reply, t.err
}

// load reads the name. It first drops what was written before the last boot.
func (t *tx) load() {
	var boot string
	var floor int64
	name := []any{t.req.Name}
	t.scan(selectMeta, name, &boot, &floor, &t.queued)
	if t.err == nil && boot != t.n.time.boot {
		if t.req.Op == node.OpInspect {
			t.queued = false
			return // it must not write, so it treats the file as empty
		}
		t.reboot()
		t.scan(selectMeta, name, &boot, &floor, &t.queued)
	}
	var kept, token int64
	t.scan(selectLock, name, &t.row, &t.value, &t.until, &kept, &t.fenceUntil, &token)

	t.held = t.until > t.now
	t.kept, t.token = node.Token(kept), node.Token(token)
	t.fence, t.least = t.kept, t.kept
	if t.fenceUntil <= t.now {
		t.fence, t.least = 0, max(t.kept, node.Token(floor))
	}
}

// store writes the name.
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

// taken returns Held or Absent.
func (t *tx) taken() node.Status {
	if t.held {
		return node.Held
	}
	return node.Absent
}

// hold gives the name to the request's value for its time to live from now.
func (t *tx) hold() {
	t.held, t.value, t.until = true, t.req.Value, t.now+int64(min(t.req.TTL, farFuture))
}

// grant is hold for a value that did not hold the name, or asks for it again.
// The holder's token stays the same when others raise the fence later.
func (t *tx) grant() {
	t.hold()
	t.token = t.req.Token
	t.raise()
}

func (t *tx) free() { t.held, t.value, t.token, t.until = false, "", 0, 0 }

// raise raises the fence to the request's token and keeps it for Retention from
// now. It lowers neither.
func (t *tx) raise() {
	if t.req.Token == 0 {
		return
	}
	t.fence = max(t.least, t.req.Token)
	t.kept, t.least = t.fence, t.fence
	t.fenceUntil = max(t.fenceUntil, t.now+int64(min(t.req.Retention, farFuture)))
}

func (t *tx) acquire() node.Status {
	switch {
	case t.heldByUs():
		// A repeated request after a lost reply must not be refused. A proposal
		// that a later one of ours has overtaken must be.
		if t.req.Token != 0 && t.req.Token < t.least {
			return node.Stale
		}
		if t.judge() == node.Ahead {
			return node.Ahead
		}
	case t.held:
		t.join()
		return node.Held
	case !t.isNext():
		t.join()
		return node.Reserved
	default:
		if s := t.judge(); s != node.Granted {
			t.renew()
			return s
		}
	}
	t.grant()
	t.store()
	t.leave()
	return node.Granted
}

// judge compares the proposed token with the fence and the wall clock.
func (t *tx) judge() node.Status {
	return node.Judge(t.req.Token, t.least, t.wall, t.req.Window)
}

func (t *tx) extend() node.Status {
	if !t.heldByUs() {
		return t.taken()
	}
	t.hold()
	t.raise()
	t.store()
	return node.Granted
}

func (t *tx) repair() node.Status {
	switch {
	case t.heldByUs():
		return node.Granted
	case t.held:
		return node.Held
	case t.req.Token == t.least, !t.req.Until.IsZero() && t.wall.After(t.req.Until):
		return node.Stale
	}
	t.grant()
	t.store()
	return node.Granted
}

func (t *tx) release() node.Status {
	status, verdict := t.taken(), t.judge()
	switch {
	case !t.heldByUs():
	case t.req.Once && (verdict == node.Stale || verdict == node.Ahead):
		return verdict
	default:
		status = node.Granted
		t.free()
	}
	// Also if the name was ours: an acquire with a higher token may still be in
	// flight, and would take the name again after we gave it up. An acquire
	// that is ahead of the clock would be refused in any case, and its release
	// must not raise the fence.
	if verdict != node.Ahead {
		t.raise()
	}
	if status == node.Granted || t.req.Token != 0 {
		t.store()
	}
	t.leave()
	return status
}

// exec and scan run a query unless an earlier one failed.

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
