package sqlite

import (
	"context"
	"time"

	"github.com/redlatch/redlatch"
)

// ?1 name, ?2 now, ?3 value
const selectPlace query = `SELECT lapses FROM waiter WHERE name = ?1 AND value = ?3 AND lapses > ?2`

// glance answers a waiter that asks again, without writing: if it is not its
// turn, and its place stands for a while yet, there is nothing to write. Readers
// do not hold up each other or a writer. Where hundreds wait and every question
// takes its turn with the file, some wait for that turn for seconds.
//
// It reports false if the question must be asked in earnest.
func (n *Node) glance(ctx context.Context, req redlatch.Request) (redlatch.Reply, bool) {
	if n.begin(ctx, beginRead) != nil {
		return redlatch.Reply{}, false
	}
	defer n.rollback()
	own := req.Value
	req.Op = redlatch.OpInspect // which load knows not to write for
	t := &tx{n: n, req: req, now: n.time.elapsed(), wall: n.time.wall()}
	t.load()
	if !t.queued || t.held && t.value == own {
		return redlatch.Reply{}, false
	}
	var place, ticket, lapses int64
	var first string
	if !t.scan(selectPlace, []any{req.Name, t.now, own}, &place) ||
		!t.scan(selectHead, []any{req.Name, t.now}, &ticket, &first, &lapses) {
		return redlatch.Reply{}, false
	}
	lease := placeBehind
	if first == own {
		lease = redlatch.WaiterLease
	}
	reply := redlatch.Reply{Fence: t.fence, Now: t.wall, Rank: t.rank()}
	switch {
	case t.err != nil || place-t.now < int64(lease/2):
		return redlatch.Reply{}, false
	case t.held:
		reply.Status, reply.Value, reply.HolderToken, reply.Left = redlatch.Held, t.value, t.token, time.Duration(t.until-t.now)
	case first == own || lapses-t.now > int64(redlatch.WaiterLease):
		return redlatch.Reply{}, false // it is ours to take, or somebody must be hurried
	default:
		reply.Status = redlatch.Reserved
	}
	return reply, true
}
