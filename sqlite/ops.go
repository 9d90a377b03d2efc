package sqlite

import (
	"slices"
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
	row       int64        // 0 while it is not there
	holders   node.Holders // those that have not expired, by the file's clock
	kept      node.Token   // the fence, even if its retention is over
	keptFloor node.Token   // the floor, likewise
	keptUntil int64
	released  int64 // when a share may have been released last, in µs of the wall clock; 0 if that is not known
	several   bool  // there is, or was, something in the table holder
	expired   bool  // and some of it has expired
	queued    bool  // somebody is in the queue, or was

	// What follows from these.
	fence node.Token // 0 when its retention is over
	// least is what a token must be above: the fence or, if its retention is
	// over, the highest of all such fences. leastShared is the same for the
	// floor, and for readers.
	least       node.Token
	leastShared node.Token
}

func (n *Node) newTx(req node.Request) *tx {
	return &tx{n: n, req: req, now: n.time.elapsed(), wall: n.time.wall()}
}

// carryOut executes the request, up to the commit.
func (n *Node) carryOut(req node.Request) (node.Reply, error) {
	t := n.newTx(req)
	if req.Op == node.OpRemember || req.Op == node.OpRecall {
		return t.remember()
	}
	t.load(req.Op != node.OpInspect)
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
	reply := t.reply(status)
	if req.Op != node.OpInspect {
		t.sweep()
	}
	return reply, t.err
}

// reply returns the reply with a status.
func (t *tx) reply(status node.Status) node.Reply {
	r := node.Reply{Status: status, Fence: t.fence, Now: t.wall}
	switch {
	case status == node.Stale:
		r.Fence = t.least
	case status == node.Held && t.held():
		t.holders.Describe(&r, t.req.Share, fileTime(t.now))
	}
	if t.req.Op != node.OpAcquire {
		return r
	}
	refused := status == node.Held || status == node.Reserved
	if refused && t.req.Wait {
		r.Rank = t.rank()
	}
	if own := t.own(); status == node.Granted && own >= 0 {
		r.Share = t.holders[own].Share
	}
	if t.req.Mode == node.Slotted && (refused || status == node.Granted) {
		r.Free = t.holders.Free(t.req.Slots, -1)
	}
	return r
}

// load reads the name. If it may write, it first drops what was written before
// the last boot. Otherwise it treats such a file as empty.
func (t *tx) load(write bool) {
	var boot string
	var floor int64
	name := []any{t.req.Name}
	t.scan(selectMeta, name, &boot, &floor, &t.queued)
	if t.err == nil && boot != t.n.time.boot {
		if !write {
			t.queued = false
			return
		}
		t.reboot()
		t.scan(selectMeta, name, &boot, &floor, &t.queued)
	}
	var value string
	var until, kept, token, keptFloor int64
	t.scan(selectLock, name, &t.row, &value, &until, &kept, &t.keptUntil, &token, &keptFloor, &t.several, &t.released)
	switch {
	case t.several:
		t.loadHolders()
	case until > t.now:
		t.holders = node.Holders{{Value: value, Token: node.Token(token), Until: fileTime(until)}}
	}
	t.kept, t.keptFloor = node.Token(kept), node.Token(keptFloor)
	t.fence, t.least, t.leastShared = t.kept, t.kept, t.keptFloor
	if t.keptUntil <= t.now {
		t.released = 0
		t.fence, t.least, t.leastShared = 0, max(t.kept, node.Token(floor)), max(t.keptFloor, node.Token(floor))
	}
}

// store writes the name.
func (t *tx) store() {
	var h node.Holder // if there is one, and it is exclusive
	var until int64
	several := t.held() && t.holders[0].Mode != node.Exclusive
	switch {
	case several:
		until = t.storeHolders()
	case t.held():
		h = t.holders[0]
		until = h.Until.UnixNano()
	}
	if t.several && !several {
		t.exec(deleteHolders, t.req.Name)
	}
	switch {
	case t.row != 0 && !t.held() && t.kept == 0:
		t.exec(deleteLock, t.row)
	case t.row != 0:
		t.exec(updateLock, t.row, h.Value, until, int64(t.kept), t.keptUntil, int64(h.Token), int64(t.keptFloor), several, t.released)
	case t.held() || t.kept != 0:
		t.exec(insertLock, t.req.Name, h.Value, until, int64(t.kept), t.keptUntil, int64(h.Token), int64(t.keptFloor), several, t.released)
	}
}

func (t *tx) held() bool { return len(t.holders) > 0 }

// own returns the index of the holder that the request is about, or -1.
func (t *tx) own() int { return t.holders.Of(t.req.Value, t.req.Share) }

// taken returns Held or Absent.
func (t *tx) taken() node.Status {
	if t.held() {
		return node.Held
	}
	return node.Absent
}

// until returns the expiry of what is granted or extended now.
func (t *tx) until() time.Time { return fileTime(t.now + int64(min(t.req.TTL, farFuture))) }

// grant gives a share to the request's value, in place of the holder at the
// index own; -1 for none. The holder's token stays the same when others raise
// the fence later.
func (t *tx) grant(share node.Share, own int) {
	h := node.Holder{Value: t.req.Value, Token: t.req.Token, Until: t.until(), Share: share}
	if own >= 0 {
		t.holders[own] = h
	} else {
		t.holders = append(t.holders, h)
	}
	t.raise(share.Mode != node.Shared)
	if share.Mode == node.Exclusive {
		t.released = 0
	}
}

// free removes the holder at an index.
func (t *tx) free(own int) { t.holders = slices.Delete(t.holders, own, own+1) }

// raise raises the fence, and the floor if it is to be raised, to the request's
// token, and keeps both for Retention from now. It lowers none of them.
func (t *tx) raise(floor bool) {
	if t.req.Token == 0 {
		return
	}
	switch {
	case t.req.Mode == node.Exclusive && t.req.Token > t.fence:
		t.released = 0
	case t.req.Mode != node.Exclusive && t.released == 0:
		t.released = t.wall.UnixMicro()
	}
	t.fence = max(t.least, t.req.Token)
	t.kept, t.least = t.fence, t.fence
	if floor {
		t.leastShared = max(t.leastShared, t.req.Token)
	}
	t.keptFloor = t.leastShared
	t.keep()
}

// keep keeps the fence and the floor for Retention from now, and not shorter
// than before.
func (t *tx) keep() {
	t.keptUntil = max(t.keptUntil, t.now+int64(min(t.req.Retention, farFuture)))
}

func (t *tx) acquire() node.Status {
	own := t.own()
	share, fits := t.holders.Place(t.req.Share, own)
	switch {
	case !fits:
		t.join()
		return node.Held
	case own >= 0:
		// A repeated request after a lost reply must not be refused. A proposal
		// that a later one of ours has overtaken must be.
		if t.req.Token != 0 && t.overtaken(t.holders[own]) {
			return node.Stale
		}
		if t.judge() == node.Ahead {
			return node.Ahead
		}
		// A copy of the request that was granted must not move the holder: its
		// claim may have won with the slot that the first one got.
		if h := t.holders[own]; h.Mode == t.req.Mode && h.Slots == t.req.Slots && h.Token == t.req.Token {
			share = h.Share
		}
	default:
		if why := t.turn(); why != node.Granted {
			t.join()
			return why
		}
		if s := t.judge(); s != node.Granted {
			t.renew()
			return s
		}
	}
	t.grant(share, own)
	t.store()
	if t.req.Wait {
		t.leave()
	}
	return node.Granted
}

// overtaken reports whether a proposal of a holder is older than what it was
// granted, or than what others were granted since.
func (t *tx) overtaken(h node.Holder) bool {
	token := t.req.Token
	switch t.req.Mode {
	case node.Exclusive:
		return token < t.least
	case node.Shared:
		return token != h.Token && token <= t.leastShared || token < h.Token
	}
	return token != h.Token && token <= t.least
}

// judge compares the proposed token with the fence and the wall clock.
func (t *tx) judge() node.Status {
	if t.req.Mode == node.Shared && t.req.Op == node.OpAcquire {
		return node.JudgeShared(t.req.Token, t.leastShared, t.least, t.wall, t.req.Window)
	}
	return node.Judge(t.req.Token, t.least, t.wall, t.req.Window)
}

func (t *tx) extend() node.Status {
	own := t.own()
	if own < 0 {
		// Absent if a repair would find room.
		if share, fits := t.holders.Place(t.req.Share, -1); fits && share == t.req.Share {
			return node.Absent
		}
		return node.Held
	}
	h := &t.holders[own]
	downgraded := h.Mode == node.Exclusive && t.req.Mode == node.Shared
	if h.Share != t.req.Share && !downgraded {
		return node.Absent
	}
	h.Until, h.Share = t.until(), t.req.Share
	if t.req.Token != 0 && t.fence != 0 {
		t.keep()
	}
	t.store()
	return node.Granted
}

func (t *tx) repair() node.Status {
	own := t.own()
	share, fits := t.holders.Place(t.req.Share, own)
	fits = fits && share == t.req.Share
	switch {
	case own >= 0 && t.holders[own].Share == t.req.Share:
		return node.Granted
	case !fits:
		return node.Held
	case own >= 0: // it has another slot, and is moved
	case t.maybeReleased(), !t.req.Until.IsZero() && t.wall.After(t.req.Until):
		return node.Stale
	}
	t.grant(share, own)
	t.store()
	t.withdraw()
	return node.Granted
}

// maybeReleased reports whether the file may have had the request's share, and
// released it.
func (t *tx) maybeReleased() bool {
	if t.req.Mode == node.Exclusive {
		return t.req.Token == t.least
	}
	return t.req.Token <= t.leastShared && (t.released == 0 || t.released >= t.req.Seen.UnixMicro())
}

func (t *tx) release() node.Status {
	own, status, verdict := t.own(), t.taken(), t.judge()
	switch {
	case own < 0:
	case t.req.Once && (verdict == node.Stale || verdict == node.Ahead):
		return verdict
	case t.req.Keep > 0:
		status = node.Granted
		h := &t.holders[own]
		if until := fileTime(t.now + int64(t.req.Keep)); until.Before(h.Until) {
			h.Until = until
		}
	default:
		status = node.Granted
		t.free(own)
	}
	// Also if the name was ours: an acquire with a higher token may still be in
	// flight, and would take the name again after we gave it up. An acquire
	// that is ahead of the clock would be refused in any case, and its release
	// must not raise the fence.
	if verdict != node.Ahead {
		// An exclusive acquire below the fence is stale, whatever the floor.
		t.raise(t.req.Mode != node.Exclusive || t.req.Token > t.fence)
		if t.req.Mode != node.Exclusive && t.req.Token != 0 {
			t.released = t.wall.UnixMicro()
		}
	}
	if status == node.Granted || t.req.Token != 0 {
		t.store()
	}
	t.withdraw()
	return status
}

// exec, scan and each run a query unless an earlier one failed.

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

func (t *tx) each(q query, args []any, row func(scan func(...any) error) error) {
	if t.err == nil {
		t.err = t.n.each(q, args, row)
	}
}
