package memory

import (
	"time"

	"github.com/redlatch/redlatch"
)

// carryOut does what the request asks. The node's mutex is held.
func (n *Node) carryOut(req redlatch.Request) redlatch.Reply {
	now := n.clock()
	e := n.entry(req.Name, now)
	var status redlatch.Status
	switch req.Op {
	case redlatch.OpAcquire:
		status = e.acquire(req, now)
	case redlatch.OpExtend:
		status = e.extend(req, now)
	case redlatch.OpRelease:
		status = e.release(req, now)
	case redlatch.OpRepair:
		status = e.repair(req, now)
	case redlatch.OpBreak:
		status = e.breakUp(req, now)
	default:
		status = e.taken()
	}
	n.store(req.Name, e, now)

	reply := redlatch.Reply{
		Status: status,
		Fence:  e.fence,
		Now:    now,
		Rank:   e.queue.rank(req.Value),
	}
	if status == redlatch.Held {
		reply.Value, reply.Left = e.value, e.until.Sub(now)
	}
	return reply
}

// taken says whether anybody has the name.
func (e *entry) taken() redlatch.Status {
	if e.held() {
		return redlatch.Held
	}
	return redlatch.Absent
}

func (e *entry) acquire(req redlatch.Request, now time.Time) redlatch.Status {
	switch {
	case e.heldBy(req.Value):
		// Asking again after a lost reply must not end in a refusal; but a
		// proposal that was overtaken by a later one of ours must.
		if req.Token != 0 && req.Token < e.fence {
			return redlatch.Stale
		}
		if judge(req, e.fence, now) == redlatch.Ahead {
			return redlatch.Ahead
		}
	case e.held():
		if req.Wait {
			e.queue.join(req, now)
		}
		return redlatch.Held
	case !e.queue.isNext(req):
		if req.Wait {
			e.queue.join(req, now)
		}
		return redlatch.Reserved
	default:
		if s := judge(req, e.fence, now); s != redlatch.Granted {
			if req.Wait {
				e.queue.renew(req.Value, now)
			}
			return s
		}
	}
	e.hold(req, now)
	e.raise(req, now)
	e.queue.leave(req.Value)
	return redlatch.Granted
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
	e.hold(req, now)
	e.raise(req, now)
	return redlatch.Granted
}

func (e *entry) repair(req redlatch.Request, now time.Time) redlatch.Status {
	switch {
	case e.heldBy(req.Value):
		return redlatch.Granted
	case e.held():
		return redlatch.Held
	case req.Token == e.fence:
		return redlatch.Stale
	}
	e.hold(req, now)
	e.raise(req, now)
	return redlatch.Granted
}

func (e *entry) release(req redlatch.Request, now time.Time) redlatch.Status {
	status := e.taken()
	if e.heldBy(req.Value) {
		status = redlatch.Granted
		e.value, e.until = "", time.Time{}
	}
	e.queue.leave(req.Value)
	// Also where the name was ours: an acquire with a raised token may still
	// be under way, and would take the name again after we gave it up. One
	// that is ahead of the clock would be refused in any case, and must not
	// lift the fence by way of its release.
	if judge(req, e.fence, now) != redlatch.Ahead {
		e.raise(req, now)
	}
	return status
}
