package sqlite

import (
	"context"

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
	t := n.newTx(req)
	t.load(false)
	if !t.queued || t.own() >= 0 {
		return node.Reply{}, false
	}
	var place int64
	if !t.scan(selectPlace, []any{req.Name, t.now, req.Value}, &place) {
		return node.Reply{}, false
	}
	first, found := t.head()
	lease := placeBehind
	if first.Value == req.Value {
		lease = node.WaiterLease
	}
	if !found || place-t.now < int64(lease/2) {
		return node.Reply{}, false
	}
	status := node.Held
	if _, fits := t.holders.Place(req.Share, -1); fits {
		// It may be ours to take, or a head's lease has to be shortened.
		if req.Barge || first.Value == req.Value || first.lapses-t.now > int64(node.WaiterLease) || t.isNext() {
			return node.Reply{}, false
		}
		status = t.blocked(first)
	}
	reply := t.reply(status)
	return reply, t.err == nil
}
