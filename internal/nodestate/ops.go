package nodestate

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// Apply executes a request that has passed Check. It returns the reply and the
// notifications to deliver. It ignores the marker: see Server.
func (e *Entry) Apply(now time.Time, req node.Request) (node.Reply, []node.Wake) {
	return e.apply(now, req, true)
}

// apply is Apply. If wakes is false, notifications are not delivered.
func (e *Entry) apply(now time.Time, req node.Request, wakes bool) (node.Reply, []node.Wake) {
	e.Settle(now)
	s := &serving{now: now, fence: e.Fence, turn: node.TurnLease}
	if !wakes {
		s.turn = node.WaiterLease // nobody can be notified: waiters poll
	}
	if req.Wait {
		s.asker = req.Value
	}
	var status node.Status
	switch req.Op {
	case node.OpAcquire:
		status = e.acquire(req, s)
	case node.OpExtend:
		status = e.extend(req, now)
	case node.OpRelease:
		status = e.release(req, s)
	case node.OpOffer:
		status = e.offer(req, s)
	case node.OpRepair:
		status = e.repair(req, s)
	case node.OpBreak:
		status = e.breakUp(req, s)
	default:
		status = e.taken()
	}
	reply := node.Reply{Status: status, Fence: e.Fence, Now: now, Wakes: wakes}
	if status == node.Reserved && req.Op == node.OpOffer ||
		(status == node.Held || status == node.Reserved) && req.Op == node.OpAcquire && req.Wait {
		reply.Rank = e.Queue.rank(req.Value)
	}
	if status == node.Reserved && req.Op == node.OpAcquire && s.watch {
		reply.Left = e.Queue.Lapses.Sub(now)
	}
	if status == node.Held {
		reply.Value, reply.HolderToken, reply.Left = e.Value, e.Token, e.Until.Sub(now)
	}
	if req.Token == 0 && (req.Op == node.OpRelease || req.Op == node.OpBreak) {
		for i := range s.wakes {
			s.wakes[i].Fence = 0 // like a Redis server, which does not read the fence then
		}
	}
	return reply, s.wakes
}

func (e *Entry) acquire(req node.Request, s *serving) node.Status {
	switch {
	case e.heldBy(req.Value):
		// A repeated request after a lost reply must not be refused. A proposal
		// that a later one of ours has overtaken must be.
		if req.Token != 0 && req.Token < e.Fence {
			return node.Stale
		}
		if judge(req, e.Fence, s.now) == node.Ahead {
			return node.Ahead
		}
	case e.held():
		return e.wait(req, node.Held, s)
	default:
		if !req.Barge && !e.Queue.first(req.Value) { // otherwise the name is not kept for another waiter
			e.Queue.serve(true, s)
		}
		if !e.Queue.isNext(req) {
			return e.wait(req, node.Reserved, s)
		}
		if status := judge(req, e.Fence, s.now); status != node.Granted {
			return status
		}
	}
	e.grant(req, s.now)
	e.Queue.leave(req.Value)
	e.Queue.serve(false, s)
	return node.Granted
}

// wait queues a caller that was refused, if it wants to wait.
func (e *Entry) wait(req node.Request, why node.Status, s *serving) node.Status {
	if req.Wait {
		e.Queue.join(req)
	}
	e.Queue.serve(why == node.Reserved, s)
	return why
}

// judge compares the proposed token with the fence and the node's clock.
func judge(req node.Request, fence node.Token, now time.Time) node.Status {
	return node.Judge(req.Token, fence, now, req.Window)
}

func (e *Entry) extend(req node.Request, now time.Time) node.Status {
	if !e.heldBy(req.Value) {
		return e.taken()
	}
	e.Until = now.Add(req.TTL)
	req.Token = min(req.Token, e.Fence) // the fence does not change, and is remembered longer
	e.raise(req, now)
	return node.Granted
}

func (e *Entry) repair(req node.Request, s *serving) node.Status {
	switch {
	case e.heldBy(req.Value):
		return node.Granted
	case e.held():
		return node.Held
	case req.Token == e.Fence, !req.Until.IsZero() && s.now.After(req.Until):
		return node.Stale
	}
	e.grant(req, s.now)
	s.fence = e.Fence
	e.Queue.leave(req.Value)
	e.Queue.serve(false, s)
	return node.Granted
}

func (e *Entry) release(req node.Request, s *serving) node.Status {
	status, verdict := e.taken(), judge(req, e.Fence, s.now)
	switch {
	case !e.heldBy(req.Value):
	case req.Once && overtaken(verdict):
		return verdict
	default:
		status = node.Granted
		e.free()
	}
	e.Queue.leave(req.Value)
	// Also if the name was ours: an acquire with a higher token may still be in
	// flight, and would take the name again after we gave it up. An acquire
	// that is ahead of the clock would be refused in any case, and its release
	// must not raise the fence.
	if verdict != node.Ahead {
		e.raise(req, s.now)
	}
	s.fence, s.asker = e.Fence, ""
	e.Queue.serve(!e.held(), s)
	return status
}

func (e *Entry) offer(req node.Request, s *serving) node.Status {
	verdict := judge(req, e.Fence, s.now)
	switch {
	case !e.heldBy(req.Value):
		return e.taken()
	case overtaken(verdict):
		return verdict
	case e.Queue.precedes(req):
		e.raise(req, s.now)
		return node.Granted
	}
	e.free()
	e.Queue.join(req)
	e.Queue.serve(true, s)
	return node.Reserved
}

// overtaken reports whether a request that must not be executed twice is
// refused: it was overtaken, by itself or by a later one, or its token is too
// far ahead to become the fence. Its age does not matter.
func overtaken(verdict node.Status) bool {
	return verdict == node.Stale || verdict == node.Ahead
}

func (e *Entry) breakUp(req node.Request, s *serving) node.Status {
	switch {
	case req.Token != 0 && (req.Token < e.Fence || req.Token == e.Fence && e.held()):
		return node.Stale
	case judge(req, e.Fence, s.now) == node.Ahead:
		return node.Ahead
	}
	e.free()
	e.raise(req, s.now)
	s.fence = e.Fence
	e.Queue.serve(true, s)
	return node.Granted
}
