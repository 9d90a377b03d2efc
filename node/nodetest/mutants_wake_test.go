package nodetest

import (
	"context"

	"github.com/redlatch/redlatch/node"
)

func wakeMutants() []mutant {
	drop := func(kind node.WakeKind) garbling {
		return func(w node.Wake) []node.Wake {
			if w.Kind == kind {
				return nil
			}
			return []node.Wake{w}
		}
	}
	return []mutant{
		{
			name:   "wakes nobody",
			tell:   drop(node.WakeTurn),
			claims: []string{"a release wakes the head, once", "a wake carries the fence", "who leaves the queue passes its turn on"},
		},
		{
			name:   "forewarns nobody",
			tell:   drop(node.WakeNear),
			claims: []string{"the second in the queue is notified that it is near"},
		},
		{
			name: "calls nobody",
			tell: drop(node.WakeCall),
			claims: []string{"those behind a silent head are called, ever more, and lapse together",
				"a held name has the same rule for silent waiters"},
		},
		{
			name: "drops those whom it calls though they ask",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if req.Value == "three" && n.notes["joined three"] != "" {
					return node.Reply{Status: node.Reserved, Rank: 2}, nil
				}
				reply, err := n.Node.Do(ctx, req)
				if req.Value == "three" && reply.Rank > 0 {
					n.notes["joined three"] = "yes"
				}
				return reply, err
			},
			claims: []string{"who asks when it is called keeps its place"},
		},
		{
			name: "keeps a name for a woken waiter for ever",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if req.Op == node.OpAcquire && req.Value == "silent" {
					n.asked = append(n.asked, req)
				}
				if req.Op == node.OpAcquire && req.Value == "two" {
					reply, err := n.Node.Do(ctx, req)
					if len(n.asked) > 0 && reply.Status == node.Granted {
						reply.Status, reply.Rank = node.Reserved, 2
					}
					return reply, err
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"a woken waiter that does not ask loses its place"},
		},
		{
			name: "wakes the next before its time",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if req.Op == node.OpExtend && n.listening != nil {
					n.listening(node.Wake{Kind: node.WakeTurn, Value: "one"})
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"nobody is woken while the name is held"},
		},
		{
			name: "gives away whatever is yielded",
			do: instead(node.OpYield, func(n *broken, req node.Request) node.Reply {
				req.Op = node.OpRelease
				reply := n.ask(req)
				if reply.Status == node.Granted {
					reply.Status = node.Reserved
				}
				return reply
			}),
			claims: []string{"a yield keeps the name from a higher ticket", "a yield gives way to a lower ticket"},
		},
		{
			name: "lets anybody yield",
			do: instead(node.OpYield, func(n *broken, req node.Request) node.Reply {
				n.evict(req)
				return n.ask(req)
			}),
			claims: []string{"a yield by another value changes nothing"},
		},
		{
			name: "carries out a yield however often it comes",
			do: rewrite(func(req *node.Request) {
				if req.Op == node.OpYield {
					req.Token = 0
				}
			}),
			claims: []string{"a yield is carried out once"},
		},
	}
}
