package sqlite

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/node"
)

// ?1 name, ?2 now, ?3 value
const selectPlace query = `SELECT lapses FROM waiter WHERE name = ?1 AND value = ?3 AND lapses > ?2`

// glance answers a waiter that asks again, without writing. If the name is not
// kept for the waiter, and its place does not have to be renewed yet, there is
// nothing to write. Readers block neither each other nor a writer. If hundreds
// of waiters had to write for each request, some would wait for the file for
// seconds.
//
// It returns false if the request has to be executed by a transaction that
// writes.
func (n *Node) glance(ctx context.Context, req node.Request) (node.Reply, bool) {
	if n.begin(ctx, beginRead) != nil {
		return node.Reply{}, false
	}
	defer n.rollback()
	own := req.Value
	req.Op = node.OpInspect // for which load does not write
	t := &tx{n: n, req: req, now: n.time.elapsed(), wall: n.time.wall()}
	t.load()
	if !t.queued || t.held && t.value == own {
		return node.Reply{}, false
	}
	var place, ticket, lapses int64
	var first string
	if !t.scan(selectPlace, []any{req.Name, t.now, own}, &place) ||
		!t.scan(selectHead, []any{req.Name, t.now}, &ticket, &first, &lapses) {
		return node.Reply{}, false
	}
	lease := placeBehind
	if first == own {
		lease = node.WaiterLease
	}
	reply := node.Reply{Fence: t.fence, Now: t.wall, Rank: t.rank()}
	switch {
	case t.err != nil || place-t.now < int64(lease/2):
		return node.Reply{}, false
	case t.held:
		reply.Status, reply.Value, reply.HolderToken, reply.Left = node.Held, t.value, t.token, time.Duration(t.until-t.now)
	case first == own || lapses-t.now > int64(node.WaiterLease):
		return node.Reply{}, false // the name is ours to take, or a head's lease has to be shortened
	default:
		reply.Status = node.Reserved
	}
	return reply, true
}
