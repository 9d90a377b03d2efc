package nodetest

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch/node"
)

func queueMutants() []mutant {
	return []mutant{
		{
			name: "queues by arrival",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				n.count++
				req.Ticket = int64(n.count)
				return n.Node.Do(ctx, req)
			},
			claims: []string{"the queue is ordered by ticket and value, not by arrival"},
		},
		{
			name:   "queues nobody",
			do:     rewrite(func(req *node.Request) { req.Wait = false }),
			claims: []string{"a free name is granted to the head alone", "queues are independent"},
		},
		{
			name: "queues everybody",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if req.Op == node.OpAcquire && !req.Wait {
					req.Wait = true
					req.Ticket = 1 << 60
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"a caller that does not wait is not queued"},
		},
		{
			name: "leaves the granted in the queue",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				reply, err := n.Node.Do(ctx, req)
				if reply.Status == node.Granted && req.Wait && n.notes["waited"+req.Value] != "" {
					n.notes[req.Name] = req.Value
				}
				if reply.Rank > 0 {
					n.notes["waited"+req.Value] = "yes"
				}
				if was := n.notes[req.Name]; was != "" && was != req.Value && reply.Status == node.Granted {
					reply.Status = node.Reserved
				}
				return reply, err
			},
			claims: []string{"a place in the queue does not survive the grant"},
		},
		{
			name: "never drops a waiter",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				reply, err := n.Node.Do(ctx, req)
				// As if the silent waiters were counted for ever.
				if reply.Status == node.Held && req.Wait && n.notes[req.Value] == "" {
					n.notes[req.Value] = "waits"
					n.asked = append(n.asked, req)
				}
				for _, w := range n.asked {
					if reply.Rank > 0 && w.Name == req.Name && w.Ticket < req.Ticket {
						reply.Rank = max(reply.Rank, 2)
					}
				}
				return reply, err
			},
			claims: []string{"a waiter that does not renew is dropped", "a release takes the waiter out at once"},
		},
		{
			name: "keeps the place of a copy",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				reply, err := n.Node.Do(ctx, req)
				if !req.Wait {
					return reply, err
				}
				switch copied := req.Token != 0 && n.notes[req.Value] == fmt.Sprint(req.Token); {
				case copied && reply.Status == node.Held:
					n.notes["place"] = req.Name
				case reply.Status == node.Granted && n.notes["place"] == req.Name:
					reply.Status, reply.Rank = node.Reserved, 2
				case reply.Status == node.Granted:
					n.notes[req.Value] = fmt.Sprint(req.Token)
				}
				return reply, err
			},
			claims: []string{"the place of a copy lapses"},
		},
		{
			name: "queues a value that was released",
			do: misreport(func(req node.Request, r *node.Reply) {
				if req.Wait && r.Status == node.Held && r.Rank == 0 {
					r.Rank = 1
				}
			}),
			claims: []string{"a late request joins no queue"},
		},
		{
			name: "drops one silent waiter at a time",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if req.Value == "living" && n.notes["joined"] != "" {
					return node.Reply{Status: node.Reserved, Rank: 2}, nil
				}
				reply, err := n.Node.Do(ctx, req)
				if req.Value == "living" {
					n.notes["joined"] = "yes"
				}
				return reply, err
			},
			claims: []string{"waiters that do not renew are dropped together"},
		},
		{
			name: "drops a waiter that renews",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if n.notes["joined"+req.Value] != "" {
					req.Wait = false
				}
				reply, err := n.Node.Do(ctx, req)
				if reply.Rank > 0 {
					n.notes["joined"+req.Value] = "yes"
				}
				return reply, err
			},
			claims: []string{"a waiter that does not renew is dropped"},
		},
		{
			name: "has one queue for all names",
			do: misreport(func(req node.Request, r *node.Reply) {
				if req.Value == "two" && r.Rank > 0 {
					r.Rank = 2
				}
			}),
			claims: []string{"queues are independent"},
		},
	}
}
