package memory

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// carryOut does what the request asks, and returns whom to tell what. The
// node's mutex is held.
func (n *Node) carryOut(req node.Request) (node.Reply, []node.Wake) {
	now := n.clock()
	e := n.entry(req.Name, now)
	s := &serving{now: now, fence: e.fence, turn: node.TurnLease}
	if len(n.listeners) == 0 {
		s.turn = node.WaiterLease // nobody can be told: they ask
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
	n.store(req.Name, e, now)

	reply := node.Reply{
		Status: status,
		Fence:  e.fence,
		Now:    now,
		Wakes:  len(n.listeners) > 0,
	}
	if status == node.Reserved && req.Op == node.OpOffer ||
		(status == node.Held || status == node.Reserved) && req.Op == node.OpAcquire && req.Wait {
		reply.Rank = e.queue.rank(req.Value)
	}
	if status == node.Reserved && req.Op == node.OpAcquire && s.watch {
		reply.Left = e.queue.lapses.Sub(now)
	}
	if status == node.Held {
		reply.Value, reply.HolderToken, reply.Left = e.value, e.token, e.until.Sub(now)
	}
	if req.Token == 0 && (req.Op == node.OpRelease || req.Op == node.OpBreak) {
		for i := range s.wakes {
			s.wakes[i].Fence = 0 // as a server, which does not look at it then
		}
	}
	return reply, s.wakes
}

// taken says whether anybody has the name.
func (e *entry) taken() node.Status {
	if e.held() {
		return node.Held
	}
	return node.Absent
}

func (e *entry) acquire(req node.Request, s *serving) node.Status {
	switch {
	case e.heldBy(req.Value):
		// Asking again after a lost reply must not end in a refusal; but a
		// proposal that was overtaken by a later one of ours must.
		if req.Token != 0 && req.Token < e.fence {
			return node.Stale
		}
		if judge(req, e.fence, s.now) == node.Ahead {
			return node.Ahead
		}
	case e.held():
		return e.wait(req, node.Held, s)
	default:
		if !req.Barge && !e.queue.first(req.Value) { // else it is not for anybody else
			e.queue.serve(true, s)
		}
		if !e.queue.isNext(req) {
			return e.wait(req, node.Reserved, s)
		}
		if status := judge(req, e.fence, s.now); status != node.Granted {
			return status
		}
	}
	e.grant(req, s.now)
	e.queue.leave(req.Value)
	e.queue.serve(false, s)
	return node.Granted
}

// wait puts a refused caller into the queue, if it is to wait.
func (e *entry) wait(req node.Request, why node.Status, s *serving) node.Status {
	if req.Wait {
		e.queue.join(req)
	}
	e.queue.serve(why == node.Reserved, s)
	return why
}

// judge compares the proposed token with the fence and the node's clock.
func judge(req node.Request, fence node.Token, now time.Time) node.Status {
	return node.Judge(req.Token, fence, now, req.Window)
}

func (e *entry) extend(req node.Request, now time.Time) node.Status {
	if !e.heldBy(req.Value) {
		return e.taken()
	}
	e.until = now.Add(req.TTL)
	req.Token = min(req.Token, e.fence) // which stays as it is, and is remembered for longer
	e.raise(req, now)
	return node.Granted
}

func (e *entry) repair(req node.Request, s *serving) node.Status {
	switch {
	case e.heldBy(req.Value):
		return node.Granted
	case e.held():
		return node.Held
	case req.Token == e.fence, !req.Until.IsZero() && s.now.After(req.Until):
		return node.Stale
	}
	e.grant(req, s.now)
	s.fence = e.fence
	e.queue.leave(req.Value)
	e.queue.serve(false, s)
	return node.Granted
}

func (e *entry) release(req node.Request, s *serving) node.Status {
	status, verdict := e.taken(), judge(req, e.fence, s.now)
	switch {
	case !e.heldBy(req.Value):
	case req.Once && overtaken(verdict):
		return verdict
	default:
		status = node.Granted
		e.free()
	}
	e.queue.leave(req.Value)
	// Also where the name was ours: an acquire with a raised token may still
	// be under way, and would take the name again after we gave it up. One
	// that is ahead of the clock would be refused in any case, and must not
	// lift the fence by way of its release.
	if verdict != node.Ahead {
		e.raise(req, s.now)
	}
	s.fence, s.asker = e.fence, ""
	e.queue.serve(!e.held(), s)
	return status
}

func (e *entry) offer(req node.Request, s *serving) node.Status {
	verdict := judge(req, e.fence, s.now)
	switch {
	case !e.heldBy(req.Value):
		return e.taken()
	case overtaken(verdict):
		return verdict
	case e.queue.precedes(req):
		e.raise(req, s.now)
		return node.Granted
	}
	e.free()
	e.queue.join(req)
	e.queue.serve(true, s)
	return node.Reserved
}

// overtaken reports whether a request that must not be carried out twice is not
// to be carried out: it was overtaken, by itself or by a later one, or its token
// is none that could overtake it. How old it is does not matter.
func overtaken(verdict node.Status) bool {
	return verdict == node.Stale || verdict == node.Ahead
}
