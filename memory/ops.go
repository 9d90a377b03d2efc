package memory

import (
	"time"

	"github.com/redlatch/redlatch"
)

// carryOut does what the request asks, and returns whom to tell what. The
// node's mutex is held.
func (n *Node) carryOut(req redlatch.Request) (redlatch.Reply, []redlatch.Wake) {
	now := n.clock()
	e := n.entry(req.Name, now)
	s := &serving{now: now, fence: e.fence, turn: redlatch.TurnLease}
	if len(n.listeners) == 0 {
		s.turn = redlatch.WaiterLease // nobody can be told: they ask
	}
	if req.Wait {
		s.asker = req.Value
	}
	var status redlatch.Status
	switch req.Op {
	case redlatch.OpAcquire:
		status = e.acquire(req, s)
	case redlatch.OpExtend:
		status = e.extend(req, now)
	case redlatch.OpRelease:
		status = e.release(req, s)
	case redlatch.OpOffer:
		status = e.offer(req, s)
	case redlatch.OpRepair:
		status = e.repair(req, s)
	case redlatch.OpBreak:
		status = e.breakUp(req, s)
	default:
		status = e.taken()
	}
	n.store(req.Name, e, now)

	reply := redlatch.Reply{
		Status: status,
		Fence:  e.fence,
		Now:    now,
		Wakes:  len(n.listeners) > 0,
	}
	if status == redlatch.Reserved && req.Op == redlatch.OpOffer ||
		(status == redlatch.Held || status == redlatch.Reserved) && req.Op == redlatch.OpAcquire && req.Wait {
		reply.Rank = e.queue.rank(req.Value)
	}
	if status == redlatch.Reserved && req.Op == redlatch.OpAcquire && s.watch {
		reply.Left = e.queue.lapses.Sub(now)
	}
	if status == redlatch.Held {
		reply.Value, reply.HolderToken, reply.Left = e.value, e.token, e.until.Sub(now)
	}
	if req.Token == 0 && (req.Op == redlatch.OpRelease || req.Op == redlatch.OpBreak) {
		for i := range s.wakes {
			s.wakes[i].Fence = 0 // as a server, which does not look at it then
		}
	}
	return reply, s.wakes
}

// taken says whether anybody has the name.
func (e *entry) taken() redlatch.Status {
	if e.held() {
		return redlatch.Held
	}
	return redlatch.Absent
}

func (e *entry) acquire(req redlatch.Request, s *serving) redlatch.Status {
	switch {
	case e.heldBy(req.Value):
		// Asking again after a lost reply must not end in a refusal; but a
		// proposal that was overtaken by a later one of ours must.
		if req.Token != 0 && req.Token < e.fence {
			return redlatch.Stale
		}
		if judge(req, e.fence, s.now) == redlatch.Ahead {
			return redlatch.Ahead
		}
	case e.held():
		return e.wait(req, redlatch.Held, s)
	default:
		if !req.Barge && !e.queue.first(req.Value) { // else it is not for anybody else
			e.queue.serve(true, s)
		}
		if !e.queue.isNext(req) {
			return e.wait(req, redlatch.Reserved, s)
		}
		if status := judge(req, e.fence, s.now); status != redlatch.Granted {
			return status
		}
	}
	e.grant(req, s.now)
	e.queue.leave(req.Value)
	e.queue.serve(false, s)
	return redlatch.Granted
}

// wait puts a refused caller into the queue, if it is to wait.
func (e *entry) wait(req redlatch.Request, why redlatch.Status, s *serving) redlatch.Status {
	if req.Wait {
		e.queue.join(req)
	}
	e.queue.serve(why == redlatch.Reserved, s)
	return why
}

// judge holds the proposed token against the fence and the node's clock.
func judge(req redlatch.Request, fence redlatch.Token, now time.Time) redlatch.Status {
	if req.Token == 0 {
		return redlatch.Granted
	}
	// Signed, since a window may reach back beyond 1970.
	token, clock, window := int64(req.Token), now.UnixMicro(), req.Window.Microseconds()
	switch {
	case req.Token <= fence:
		return redlatch.Stale
	case token < clock-window:
		// Even with no fence: the node may have forgotten a higher one.
		return redlatch.Behind
	case token > max(clock+window, int64(fence)+redlatch.TokenLeap):
		return redlatch.Ahead
	}
	return redlatch.Granted
}

func (e *entry) extend(req redlatch.Request, now time.Time) redlatch.Status {
	if !e.heldBy(req.Value) {
		return e.taken()
	}
	e.until = now.Add(req.TTL)
	req.Token = min(req.Token, e.fence) // which stays as it is, and is remembered for longer
	e.raise(req, now)
	return redlatch.Granted
}

func (e *entry) repair(req redlatch.Request, s *serving) redlatch.Status {
	switch {
	case e.heldBy(req.Value):
		return redlatch.Granted
	case e.held():
		return redlatch.Held
	case req.Token == e.fence, !req.Until.IsZero() && s.now.After(req.Until):
		return redlatch.Stale
	}
	e.grant(req, s.now)
	s.fence = e.fence
	e.queue.leave(req.Value)
	e.queue.serve(false, s)
	return redlatch.Granted
}

func (e *entry) release(req redlatch.Request, s *serving) redlatch.Status {
	status, verdict := e.taken(), judge(req, e.fence, s.now)
	switch {
	case !e.heldBy(req.Value):
	case req.Once && overtaken(verdict):
		return verdict
	default:
		status = redlatch.Granted
		e.free()
	}
	e.queue.leave(req.Value)
	// Also where the name was ours: an acquire with a raised token may still
	// be under way, and would take the name again after we gave it up. One
	// that is ahead of the clock would be refused in any case, and must not
	// lift the fence by way of its release.
	if verdict != redlatch.Ahead {
		e.raise(req, s.now)
	}
	s.fence, s.asker = e.fence, ""
	e.queue.serve(!e.held(), s)
	return status
}

func (e *entry) offer(req redlatch.Request, s *serving) redlatch.Status {
	verdict := judge(req, e.fence, s.now)
	switch {
	case !e.heldBy(req.Value):
		return e.taken()
	case overtaken(verdict):
		return verdict
	case e.queue.precedes(req):
		e.raise(req, s.now)
		return redlatch.Granted
	}
	e.free()
	e.queue.join(req)
	e.queue.serve(true, s)
	return redlatch.Reserved
}

// overtaken reports whether a request that must not be carried out twice is not
// to be carried out: it was overtaken, by itself or by a later one, or its token
// is none that could overtake it. How old it is does not matter.
func overtaken(verdict redlatch.Status) bool {
	return verdict == redlatch.Stale || verdict == redlatch.Ahead
}
