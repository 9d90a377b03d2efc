package nodetest

import (
	"context"

	"github.com/redlatch/redlatch"
)

func wakeMutants() []mutant {
	drop := func(kind redlatch.WakeKind) garbling {
		return func(w redlatch.Wake) []redlatch.Wake {
			if w.Kind == kind {
				return nil
			}
			return []redlatch.Wake{w}
		}
	}
	return []mutant{
		{
			name:   "wakes nobody",
			tell:   drop(redlatch.WakeTurn),
			claims: []string{"a release wakes the head, once", "a wake carries the fence", "who leaves the queue passes its turn on"},
		},
		{
			name:   "wakes twice",
			tell:   func(w redlatch.Wake) []redlatch.Wake { return []redlatch.Wake{w, w} },
			claims: []string{"a release wakes the head, once"},
		},
		{
			name:   "forewarns nobody",
			tell:   drop(redlatch.WakeNear),
			claims: []string{"the second in line is told that it is near"},
		},
		{
			name:   "calls nobody",
			tell:   drop(redlatch.WakeCall),
			claims: []string{"those behind a silent head are called, ever more, and lapse together"},
		},
		{
			name: "does not say when to look again",
			do: misreport(func(_ redlatch.Request, r *redlatch.Reply) {
				if r.Status == redlatch.Reserved {
					r.Left = 0
				}
			}),
			claims: []string{"those behind a silent head are called, ever more, and lapse together"},
		},
		{
			name: "drops those whom it calls though they ask",
			do: func(n *broken, ctx context.Context, req redlatch.Request) (redlatch.Reply, error) {
				if req.Value == "three" && n.notes["joined three"] != "" {
					return redlatch.Reply{Status: redlatch.Reserved, Rank: 2}, nil
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
			name: "leaves the fence out of its wakes",
			tell: func(w redlatch.Wake) []redlatch.Wake {
				w.Fence = 0
				return []redlatch.Wake{w}
			},
			claims: []string{"a wake carries the fence"},
		},
		{
			name: "keeps a name for a woken waiter for ever",
			do: func(n *broken, ctx context.Context, req redlatch.Request) (redlatch.Reply, error) {
				if req.Op == redlatch.OpAcquire && req.Value == "silent" {
					n.asked = append(n.asked, req)
				}
				if req.Op == redlatch.OpAcquire && req.Value == "two" {
					reply, err := n.Node.Do(ctx, req)
					if len(n.asked) > 0 && reply.Status == redlatch.Granted {
						reply.Status, reply.Rank = redlatch.Reserved, 2
					}
					return reply, err
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"a woken waiter that does not ask loses its place"},
		},
		{
			name: "wakes the next before its time",
			do: func(n *broken, ctx context.Context, req redlatch.Request) (redlatch.Reply, error) {
				if req.Op == redlatch.OpExtend && n.listening != nil {
					n.listening(redlatch.Wake{Kind: redlatch.WakeTurn, Value: "one"})
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"nobody is woken while the name is held"},
		},
		{
			name:   "lets nobody barge",
			do:     rewrite(func(req *redlatch.Request) { req.Barge = false }),
			claims: []string{"a barging caller takes a free name"},
		},
		{
			name: "keeps what is offered",
			do: instead(redlatch.OpOffer, func(n *broken, req redlatch.Request) redlatch.Reply {
				req.Op = redlatch.OpInspect
				reply := n.ask(req)
				reply.Status = redlatch.Granted
				return reply
			}),
			claims: []string{"an offer gives way to a lower ticket"},
		},
		{
			name: "gives away whatever is offered",
			do: instead(redlatch.OpOffer, func(n *broken, req redlatch.Request) redlatch.Reply {
				req.Op = redlatch.OpRelease
				reply := n.ask(req)
				if reply.Status == redlatch.Granted {
					reply.Status = redlatch.Reserved
				}
				return reply
			}),
			claims: []string{"an offer keeps the name from a higher ticket", "an offer gives way to a lower ticket"},
		},
		{
			name: "lets anybody offer",
			do: instead(redlatch.OpOffer, func(n *broken, req redlatch.Request) redlatch.Reply {
				n.evict(req)
				return n.ask(req)
			}),
			claims: []string{"an offer by another value changes nothing"},
		},
		{
			name: "carries out an offer however often it comes",
			do: rewrite(func(req *redlatch.Request) {
				if req.Op == redlatch.OpOffer {
					req.Token = 0
				}
			}),
			claims: []string{"an offer is carried out once"},
		},
	}
}
