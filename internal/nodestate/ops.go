package nodestate

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// apply executes a request that has passed Check. It returns the reply and the
// notifications to deliver; none are delivered if wakes is false. It ignores the
// marker: see Server.
func (e *Entry) apply(now time.Time, req node.Request, wakes bool) (node.Reply, []node.Wake) {
	e.Settle(now)
	s := &serving{now: now, fence: e.Fence, turn: turnOf(wakes)}
	if req.Wait && req.Op == node.OpAcquire || req.Op == node.OpYield {
		s.asker = req.Value
	}
	var status node.Status
	switch req.Op {
	case node.OpAcquire:
		status = e.acquire(req, s)
	case node.OpExtend:
		status = e.extend(req, s)
	case node.OpRelease:
		status = e.release(req, s)
	case node.OpYield:
		status = e.yield(req, s)
	case node.OpRepair:
		status = e.repair(req, s)
	case node.OpBreak:
		status = e.breakUp(req, s)
	default:
		status = e.taken()
	}
	reply := node.Reply{Status: status, Fence: e.Fence, Now: now, Queued: node.Queued{Wakes: wakes}}
	if status == node.Reserved && req.Op == node.OpYield ||
		(status == node.Held || status == node.Reserved) && req.Op == node.OpAcquire && req.Wait {
		reply.Rank = e.Queue.rank(req.Value)
	}
	if status == node.Reserved && req.Op == node.OpAcquire && s.watch {
		reply.Left = FreshFor
		if e.Queue.rank(e.Queue.Head) > 0 {
			reply.Left = e.Queue.Lapses.Sub(now)
		}
	}
	if s.reserved {
		reply.Confirmed, reply.Next = true, e.Queue.next()
	}
	if status == node.Held {
		e.Holders.Describe(&reply, req.Share, now)
	}
	if req.Op == node.OpAcquire {
		if own := e.Holders.Of(req.Value, req.Share); status == node.Granted && own >= 0 {
			reply.Share = e.Holders[own].Share
		}
		if req.Mode == node.Slotted && (status == node.Granted || status == node.Held || status == node.Reserved) {
			reply.Free = e.Holders.Free(req.Slots, -1)
		}
	}
	return reply, s.wakes
}

// turnOf is how long a name is kept for a waiter: for longer where nobody can be
// notified, and waiters poll.
func turnOf(wakes bool) time.Duration {
	if wakes {
		return node.TurnLease
	}
	return node.WaiterLease
}

func (e *Entry) acquire(req node.Request, s *serving) node.Status {
	own := e.Holders.Of(req.Value, req.Share)
	share, fits := e.Holders.Place(req.Share, own)
	switch {
	case !fits:
		return e.wait(req, node.Held, s)
	case own >= 0:
		// A repeated request after a lost reply must not be refused. A proposal
		// that a later one of ours has overtaken must be.
		if req.Token != 0 && e.overtaken(req, e.Holders[own]) {
			return node.Stale
		}
		if e.judge(req, s.now) == node.Ahead {
			return node.Ahead
		}
		// A copy of the request that was granted must not move the holder: its
		// claim may have won with the slot that the first one got.
		if h := e.Holders[own]; h.Mode == req.Mode && h.Slots == req.Slots && h.Token == req.Token {
			share = h.Share
		}
	default:
		if e.Queue.beside != nil || !e.Queue.first(s.asker) { // otherwise the name is not kept for another waiter
			e.Queue.serve(e.Holders, s)
		}
		if !e.Queue.isNext(req, e.Holders.Room(-1)) {
			// Without a waiter in sight, those in sight were skipped.
			if room := e.Holders.Room(-1); len(e.Queue.Waiters) == 0 || room.Take(e.Queue.Waiters[0].Share) {
				return e.wait(req, node.Reserved, s)
			}
			return e.wait(req, node.Held, s)
		}
		if status := e.judge(req, s.now); status != node.Granted {
			return status
		}
	}
	e.grant(req, share, own, s.now)
	e.Queue.leave(s.asker)
	if e.Queue.beside != nil {
		e.Queue.beside.fresh = false // the next one may fit beside it
	}
	e.Queue.serve(e.Holders, s)
	return node.Granted
}

// overtaken reports whether a proposal of a holder is older than what it was
// granted, or than what others were granted since.
func (e *Entry) overtaken(req node.Request, h node.Holder) bool {
	switch req.Mode {
	case node.Exclusive:
		return req.Token < e.Fence
	case node.Shared:
		return req.Token != h.Token && req.Token <= e.Floor || req.Token < h.Token
	}
	return req.Token != h.Token && req.Token <= e.Fence
}

// wait queues a caller that was refused, if it wants to wait. A late request
// does not join: its value was released here, or its token is so old that this
// may be forgotten.
func (e *Entry) wait(req node.Request, why node.Status, s *serving) node.Status {
	old := req.Token != 0 && int64(req.Token) < s.now.UnixMicro()-req.Window.Microseconds()
	late := old || e.ended(req.Value)
	if e.Queue.beside != nil {
		e.Queue.beside.late = late
		return why
	}
	if req.Wait && (!late || e.Queue.rank(req.Value) > 0) {
		e.Queue.join(req)
		e.Queue.serve(e.Holders, s)
	}
	return why
}

// judge compares the proposed token with the fence and the node's clock.
func (e *Entry) judge(req node.Request, now time.Time) node.Status {
	if req.Mode == node.Shared && req.Op == node.OpAcquire {
		return node.JudgeShared(req.Token, e.Floor, e.Fence, now, req.Window)
	}
	return node.Judge(req.Token, e.Fence, now, req.Window)
}

func (e *Entry) extend(req node.Request, s *serving) node.Status {
	own := e.Holders.Of(req.Value, req.Share)
	if own < 0 {
		return e.missing(req)
	}
	h := &e.Holders[own]
	downgraded := h.Mode == node.Exclusive && req.Mode == node.Shared
	if h.Share != req.Share && !downgraded {
		return node.Absent
	}
	h.Until, h.Share = s.now.Add(req.TTL), req.Share
	if req.Reserve > 0 {
		s.reserved = e.reserve(req, h, s.now)
	}
	if req.Token != 0 && e.Fence != 0 {
		e.keepFence(req, s.now)
	}
	if downgraded {
		e.Queue.serve(e.Holders, s)
	}
	return node.Granted
}

// reserve reserves the tokens from the request's on for an exclusive holder, and
// reports whether they are. They must be above the fence: another may have been
// granted a token up to there. A copy of the request finds them reserved.
func (e *Entry) reserve(req node.Request, h *node.Holder, now time.Time) bool {
	last := req.Token + req.Reserve
	switch {
	case h.Mode != node.Exclusive || req.Token == 0:
		return false
	case h.Token == req.Token && e.Fence == last:
		return true
	case e.judge(req, now) != node.Granted || node.Judge(last, e.Fence, now, req.Window) == node.Ahead:
		return false
	}
	h.Token, e.Fence, e.Floor = req.Token, last, last
	return true
}

// missing is the answer to an extension of what is not there: Absent if a repair
// would find room for it.
func (e *Entry) missing(req node.Request) node.Status {
	if share, fits := e.Holders.Place(req.Share, -1); fits && share == req.Share {
		return node.Absent
	}
	return node.Held
}

func (e *Entry) repair(req node.Request, s *serving) node.Status {
	own := e.Holders.Of(req.Value, req.Share)
	share, fits := e.Holders.Place(req.Share, own)
	fits = fits && share == req.Share
	switch {
	case own >= 0 && e.Holders[own].Share == req.Share:
		return node.Granted
	case !fits:
		return node.Held
	case own >= 0: // it has another slot, and is moved
	case req.Token < e.Break: // an equal one may be that of the next holder
		return node.Stale
	case e.ended(req.Value), !req.Until.IsZero() && s.now.After(req.Until):
		return node.Stale
	}
	e.grant(req, share, own, s.now)
	s.fence = e.Fence
	e.Queue.withdraw(req)
	e.Queue.serve(e.Holders, s)
	return node.Granted
}

func (e *Entry) release(req node.Request, s *serving) node.Status {
	own, verdict := e.Holders.Of(req.Value, req.Share), e.judge(req, s.now)
	waits := own < 0 && e.Queue.Head != req.Value
	status := e.taken()
	switch {
	case own < 0:
	case req.Once && refused(verdict):
		return verdict
	case req.Keep > 0:
		status = node.Granted
		h := &e.Holders[own]
		if until := s.now.Add(req.Keep); until.Before(h.Until) {
			h.Until = until
		}
	default:
		status = node.Granted
		e.free(own)
	}
	e.Queue.withdraw(req)
	// Also if the name was ours: an acquire with a higher token may still be in
	// flight, and would take the name again after we gave it up. An acquire
	// that is ahead of the clock would be refused in any case, and its release
	// must not raise the fence.
	if verdict != node.Ahead {
		// An exclusive acquire below the fence is stale, whatever the floor.
		e.raise(req, req.Mode != node.Exclusive || req.Token > e.Fence, s.now)
	}
	if req.NoRepair > 0 {
		e.end(req.Value, s.now.Add(req.NoRepair))
	}
	s.fence = e.Fence
	// Where the queue is in places, who leaves passes on what was kept for it, and what
	// is beside the holders. If a crowd leaves a free name at once, one of them writes.
	if e.Queue.beside == nil || !waits || e.held() && !e.Kept(e.Queue.Waiters) {
		e.Queue.serve(e.Holders, s)
	}
	return status
}

func (e *Entry) yield(req node.Request, s *serving) node.Status {
	own, verdict := e.Holders.Of(req.Value, req.Share), e.judge(req, s.now)
	switch {
	case own < 0:
		return e.taken()
	case refused(verdict):
		return verdict
	case e.Queue.isNext(req, e.Holders.Room(own)):
		e.raise(req, req.Mode != node.Shared, s.now)
		return node.Granted
	}
	e.free(own)
	if e.Queue.beside == nil { // else its place is put when others can have the name
		e.Queue.join(req)
	}
	e.Queue.serve(e.Holders, s)
	return node.Reserved
}

// refused reports whether a request that must not be executed twice is refused:
// it was overtaken, by itself or by a later one, or its token is too far ahead
// to become the fence. Its age does not matter.
func refused(verdict node.Status) bool {
	return verdict == node.Stale || verdict == node.Ahead
}

func (e *Entry) breakUp(req node.Request, s *serving) node.Status {
	switch {
	case req.Token != 0 && (req.Token < e.Fence || req.Token == e.Fence && e.held()):
		return node.Stale
	case e.judge(req, s.now) == node.Ahead:
		return node.Ahead
	}
	if req.Token != 0 {
		// Also if the name is free: its holder on other nodes would have it
		// repaired here before the break reaches them.
		e.Break, e.BreakUntil = req.Token, later(e.BreakUntil, s.now.Add(req.Retention))
		if e.held() {
			e.Broken = req.Token
		}
	}
	e.Holders = nil
	e.raise(req, true, s.now)
	s.fence = e.Fence
	e.Queue.serve(e.Holders, s)
	return node.Granted
}
