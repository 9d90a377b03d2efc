package nodetest

import (
	"github.com/redlatch/redlatch/node"
)

func breakMutants() []mutant {
	look := func(n *broken, req node.Request) node.Reply {
		req.Op = node.OpInspect
		return n.ask(req)
	}
	return []mutant{
		{
			name: "says broken and leaves the holder",
			do: instead(node.OpBreak, func(n *broken, req node.Request) node.Reply {
				reply := look(n, req)
				reply.Status, reply.Fence = node.Granted, req.Token
				return reply
			}),
			claims: []string{"a broken holder can neither extend nor release", "a break without a token leaves the fence alone"},
		},
		{
			name: "breaks without raising the fence",
			do: instead(node.OpBreak, func(n *broken, req node.Request) node.Reply {
				n.evict(req)
				reply := look(n, req)
				reply.Status, reply.Fence = node.Granted, req.Token
				return reply
			}),
			claims: []string{"after a break the next token must be above its own", "a break of a free name raises the fence"},
		},
		{
			name: "breaks whatever came later",
			do: instead(node.OpBreak, func(n *broken, req node.Request) node.Reply {
				n.evict(req)
				return n.ask(req)
			}),
			claims: []string{"a break leaves alone what was granted its token or a higher one"},
		},
		{
			name: "repairs a holder that was broken",
			do: instead(node.OpRepair, func(n *broken, req node.Request) node.Reply {
				reply := n.ask(req)
				if reply.Status == node.Stale {
					req.Token = reply.Fence
					reply = n.ask(req)
				}
				return reply
			}),
			claims: []string{"a holder that was broken is not repaired", "a holder is not repaired on a node that was free when it was broken"},
		},
		{
			name: "takes the token of a break for one from before it",
			do: instead(node.OpRepair, func(n *broken, req node.Request) node.Reply {
				if reply := look(n, req); reply.Fence == req.Token {
					reply.Status = node.Stale
					return reply
				}
				return n.ask(req)
			}),
			claims: []string{"a holder with the token of a break is repaired"},
		},
		{
			name: "breaks once with a token",
			do: instead(node.OpBreak, func(n *broken, req node.Request) node.Reply {
				if reply := look(n, req); req.Token != 0 && reply.Fence == req.Token {
					reply.Status = node.Stale
					return reply
				}
				return n.ask(req)
			}),
			claims: []string{"breaking twice is harmless"},
		},
		{
			name: "breaks before it looks at the window",
			do: instead(node.OpBreak, func(n *broken, req node.Request) node.Reply {
				reply := n.ask(req)
				if reply.Status == node.Ahead {
					n.evict(req)
				}
				return reply
			}),
			claims: []string{"a break ahead of the window changes nothing"},
		},
		{
			name: "breaks what begins alike",
			do: instead(node.OpBreak, func(n *broken, req node.Request) node.Reply {
				other := req
				other.Name += "/other"
				n.evict(other)
				return n.ask(req)
			}),
			claims: []string{"a break takes one name alone"},
		},
		{
			name: "empties the queue with a break",
			do: instead(node.OpBreak, func(n *broken, req node.Request) node.Reply {
				for _, value := range []string{"one", "two"} {
					leave := req
					leave.Op, leave.Value, leave.Token = node.OpRelease, value, 0
					n.ask(leave)
				}
				return n.ask(req)
			}),
			claims: []string{"a break leaves waiters their places"},
		},
	}
}
