package nodetest

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/node"
)

func tokenMutants() []mutant {
	return []mutant{
		{
			name: "takes the fence for the holder's token",
			do: misreport(func(_ node.Request, r *node.Reply) {
				if r.Status == node.Held {
					r.HolderToken = r.Fence
				}
			}),
			claims: []string{"a holder is reported with its own token, however high the fence", "a holder without a token is reported without one", "a yield that is kept leaves the holder its token"},
		},
		{
			name:   "does not report the holder's token",
			do:     misreport(func(_ node.Request, r *node.Reply) { r.HolderToken = 0 }),
			claims: []string{"a holder that asks again is reported with its last token", "the next holder is reported with its own token"},
		},
		{
			name:   "reserves nothing",
			do:     rewrite(func(req *node.Request) { req.Reserve = 0 }),
			claims: []string{"a reserve raises the fence to its last token"},
		},
		{
			name: "confirms every reserve",
			do: misreport(func(req node.Request, r *node.Reply) {
				r.Confirmed = req.Reserve > 0 && r.Status == node.Granted
			}),
			claims: []string{
				"a reserve at or below the fence is not confirmed", "a reserve out of the window is not confirmed",
				"nothing is reserved for a reader, or without a token",
			},
		},
		{
			name:   "does not show who is first in the queue",
			do:     misreport(func(_ node.Request, r *node.Reply) { r.Next = 0 }),
			claims: []string{"a reserve shows the first ticket in the queue"},
		},
		{
			name:   "has no window",
			do:     rewrite(func(req *node.Request) { req.Window = 200 * 365 * 24 * time.Hour }),
			claims: []string{"a token behind the window is refused even with no fence", "a token ahead of the window is refused"},
		},
		{
			name: "goes by the clock of others, though it has one",
			do: rewrite(func(req *node.Request) {
				if !req.Clock.IsZero() {
					req.Window = 200 * 365 * 24 * time.Hour
				}
			}),
			claims: []string{"only a node without a clock goes by that of others"},
		},
		{
			name: "does not let a fence lead beyond the window",
			do: instead(node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				look := req
				look.Op = node.OpInspect
				reply := n.ask(look)
				if req.Token > node.Token(reply.Now.Add(req.Window).UnixMicro()) {
					reply.Status = node.Ahead
					return reply
				}
				return n.ask(req)
			}),
			claims: []string{"a token just above a fence far ahead is granted"},
		},
		{
			name:   "has too small a window",
			do:     rewrite(func(req *node.Request) { req.Window /= 4 }),
			claims: []string{"a token within the window is granted"},
		},
		{
			name: "takes token 0 for a token",
			do: instead(node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				req.Token = max(req.Token, 1)
				req.Window = 200 * 365 * 24 * time.Hour
				return n.ask(req)
			}),
			claims: []string{"token 0 neither checks nor touches the fence"},
		},
		{
			name:   "keeps tokens as 15 digits",
			do:     rewrite(func(req *node.Request) { req.Token = (req.Token + 5) / 10 * 10 }),
			claims: []string{"tokens are exact to the last digit"},
		},
	}
}

func fenceMutants() []mutant {
	return []mutant{
		{
			name: "raises the fence by extending",
			do: instead(node.OpExtend, func(n *broken, req node.Request) node.Reply {
				if req.Token != 0 {
					phantom := req
					phantom.Op, phantom.Value, phantom.Token = node.OpRelease, "phantom", req.Token+1
					n.ask(phantom)
				}
				return n.ask(req)
			}),
			claims: []string{"extension keeps the fence"},
		},
		{
			name: "has the last request say how long the fence is kept",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if req.Retention < time.Second && req.Op == node.OpBreak {
					n.notes[req.Name] = "+"
				}
				req.Name += n.notes[req.Name]
				return n.Node.Do(ctx, req)
			},
			claims: []string{"a shorter retention does not shorten the fence's"},
		},
		{
			name: "forgets the fence by releasing",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				name := req.Name
				req.Name += n.notes[name]
				reply, err := n.Node.Do(ctx, req)
				if req.Op == node.OpRelease && reply.Status == node.Granted {
					n.notes[name] += "+"
				}
				return reply, err
			},
			claims: []string{"a token at or below the fence is stale", "a release never lowers the fence"},
		},
		{
			name:   "never forgets a fence",
			do:     rewrite(func(req *node.Request) { req.Retention *= 1000 }),
			claims: []string{"a fence is forgotten after its retention"},
		},
		{
			name:   "forgets a fence that it should keep",
			kind:   "keeps fences",
			do:     rewrite(func(*node.Request) {}),
			claims: []string{"a fence binds beyond its retention"},
		},
		{
			name: "does not raise the fence by releasing",
			do: rewrite(func(req *node.Request) {
				if req.Op == node.OpRelease {
					req.Token = 0
				}
			}),
			claims: []string{"a release that comes first makes the acquire stale", "a release of what is held raises the fence"},
		},
		{
			name: "lets its holder raise the token without bounds",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if held := n.ask(node.Request{Op: node.OpInspect, Name: req.Name}); req.Op == node.OpAcquire && held.Value == req.Value {
					req.Window *= 100
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"asking again with a token ahead of the window is refused"},
		},
		{
			name: "repairs nothing",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if req.Op == node.OpRepair {
					req.Op = node.OpInspect
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{
				"a repair takes a free name and sets the fence", "a repair with a token behind the window is granted",
				"a repair is granted whatever the fence, and does not lower it",
			},
		},
		{
			name: "repairs over another's lock",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if req.Op == node.OpRepair {
					n.evict(req)
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"a repair never takes what another holds"},
		},
		{
			name: "repairs what was released",
			do:   rewrite(func(req *node.Request) { req.NoRepair = 0 }),
			claims: []string{
				"a repair after a release that forbids it is stale", "a release forbids repairs of its own value alone, and for a while",
				"a repair of a reader needs room", "a copy of a repair that comes after the release is stale",
			},
		},
		{
			name: "repairs however late it is",
			do: rewrite(func(req *node.Request) {
				req.Until = time.Time{}
			}),
			claims: []string{"a repair that comes too late is stale"},
		},
		{
			name: "carries out a release however often it comes",
			do: rewrite(func(req *node.Request) {
				req.Once = false
			}),
			claims: []string{"a release that is to be carried out once is"},
		},
		{
			name: "raises the fence out of the window by releasing",
			do: rewrite(func(req *node.Request) {
				if req.Op == node.OpRelease {
					req.Window *= 100
				}
			}),
			claims: []string{"a release ahead of the window raises nothing"},
		},
	}
}
