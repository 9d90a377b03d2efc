package nodetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// shareMutants are wrong about locks that are not exclusive.
func shareMutants() []mutant {
	return slices.Concat(readerMutants(), readerTokenMutants(), slotMutants(), slotMoveMutants(),
		downgradeMutants(), wholeNameMutants(), shareQueueMutants(), shareWakeMutants())
}

// sharing breaks a node by replacing one operation on locks of one mode.
func sharing(mode node.Mode, op node.Op, f func(n *broken, req node.Request) node.Reply) breakage {
	return func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
		if req.Op != op || req.Mode != mode || ctx.Err() != nil || req.Share.Check() != nil {
			return n.Node.Do(ctx, req)
		}
		return f(n, req), nil
	}
}

// lenient breaks a node by another request where it refuses the first.
func lenient(mode node.Mode, op node.Op, refusal node.Status, change func(req *node.Request, r node.Reply)) breakage {
	return sharing(mode, op, func(n *broken, req node.Request) node.Reply {
		reply := n.ask(req)
		if reply.Status == refusal {
			change(&req, reply)
			reply = n.ask(req)
		}
		return reply
	})
}

// look returns what the node knows about the request's name.
func (n *broken) look(req node.Request) node.Listing {
	l, err := n.Node.Look(context.Background(), req.Name)
	if err != nil {
		panic(err)
	}
	return l
}

// own returns what the request's value holds, if it holds anything.
func (n *broken) own(req node.Request) (h node.Holder, ok bool) {
	holders := n.look(req).Holders
	if i := slices.IndexFunc(holders, func(h node.Holder) bool { return h.Value == req.Value }); i >= 0 {
		return holders[i], true
	}
	return h, false
}

// free returns the slots that the request may have.
func (n *broken) free(req node.Request) node.SlotSet {
	holders := node.Holders(n.look(req).Holders)
	return holders.Free(req.Slots, holders.Of(req.Value, req.Share))
}

// refusal returns a refusal that changes nothing.
func (n *broken) refusal(why node.Status, req node.Request) node.Reply {
	reply := n.ask(node.Request{Op: node.OpInspect, Name: req.Name})
	reply.Status = why
	reply.Rank = slices.IndexFunc(n.look(req).Waiters, func(w node.Waiter) bool { return w.Value == req.Value }) + 1
	return reply
}

// admit grants an acquire that was refused because of a holder of one mode.
func admit(asked, held node.Mode) breakage {
	return misreport(func(req node.Request, r *node.Reply) {
		if req.Op == node.OpAcquire && req.Mode == asked && r.Status == node.Held && r.Share.Mode == held {
			r.Status, r.Share = node.Granted, req.Share
		}
	})
}

func readerMutants() []mutant {
	return []mutant{
		{
			name:   "does not say what the holder has",
			do:     misreport(func(_ node.Request, r *node.Reply) { r.Share = node.Share{} }),
			claims: []string{"readers hold a name together", "slots are given lowest first", "another number of slots conflicts"},
		},
		{
			name:   "lets a writer in beside readers",
			do:     admit(node.Exclusive, node.Shared),
			claims: []string{"a reader and a writer exclude each other", "each reader has its own expiry"},
		},
		{
			name:   "lets readers in beside a writer",
			do:     admit(node.Shared, node.Exclusive),
			claims: []string{"a reader and a writer exclude each other", "an extension makes a writer a reader"},
		},
		{
			name: "says when the last slot is free",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				reply, err := n.Node.Do(ctx, req)
				for _, h := range n.look(req).Holders {
					if reply.Status == node.Held {
						reply.Left = max(reply.Left, h.Until.Sub(reply.Now))
					}
				}
				return reply, err
			},
			claims: []string{"a slot is free after its holder has expired"},
		},
		{
			name:   "frees any reader for another",
			do:     lenient(node.Shared, node.OpRelease, node.Held, func(req *node.Request, r node.Reply) { req.Value = r.Value }),
			claims: []string{"a reader extends and releases its own share alone", "a release of a reader makes its acquire stale"},
		},
	}
}

func readerTokenMutants() []mutant {
	forget := func(req *node.Request, _ node.Reply) { req.Token = 0 }
	return []mutant{
		{
			name: "ignores the floor",
			do:   lenient(node.Shared, node.OpAcquire, node.Stale, forget),
			claims: []string{
				"a reader needs a token above every writer's", "a release of a reader makes its acquire stale",
				"a reader that asks again keeps its token or raises it", "a break removes all holders",
			},
		},
		{
			name:   "has no window for a reader below the fence",
			do:     lenient(node.Shared, node.OpAcquire, node.Behind, forget),
			claims: []string{"readers do not refuse each other's tokens"},
		},
		{
			name: "has slots look at no fence",
			do: sharing(node.Slotted, node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				reply := n.ask(req)
				if _, has := n.own(req); reply.Status == node.Stale && !has {
					req.Token = 0
					reply = n.ask(req)
				}
				return reply
			}),
			claims: []string{"a writer needs a token above every reader's", "a slot needs a token above every other's"},
		},
		{
			name: "compares the release of a reader with the floor",
			do: sharing(node.Shared, node.OpRelease, func(n *broken, req node.Request) node.Reply {
				if h, has := n.own(req); has && req.Token > h.Token {
					req.Once = false
				}
				return n.ask(req)
			}),
			claims: []string{"a release of a reader that is to be carried out once is"},
		},
	}
}

func slotMutants() []mutant {
	acquire := func(change func(n *broken, req *node.Request)) breakage {
		return sharing(node.Slotted, node.OpAcquire, func(n *broken, req node.Request) node.Reply {
			change(n, &req)
			return n.ask(req)
		})
	}
	return []mutant{
		{
			name:   "does not say which slots are free",
			do:     misreport(func(_ node.Request, r *node.Reply) { r.Free = 0 }),
			claims: []string{"slots are given lowest first", "a repair moves a value to its slot"},
		},
		{
			name:   "lets readers in beside slots",
			do:     admit(node.Shared, node.Slotted),
			claims: []string{"no slot has two holders", "a slot excludes readers and writers, and they a slot"},
		},
		{
			name: "ignores which slot is asked for",
			do:   acquire(func(_ *broken, req *node.Request) { req.Slot = 0 }),
			claims: []string{
				"a slot that is asked for is given if it is free", "a holder moves to a free slot and to no other",
				"another number of slots conflicts",
			},
		},
		{
			name: "frees the slot that is named alone",
			do: sharing(node.Slotted, node.OpRelease, func(n *broken, req node.Request) node.Reply {
				if h, has := n.own(req); has && h.Share != req.Share {
					return n.refusal(node.Held, req)
				}
				return n.ask(req)
			}),
			claims: []string{"an extension is for one slot"},
		},
	}
}

func slotMoveMutants() []mutant {
	// own breaks a node by changing what a holder of a slot asks for.
	own := func(change func(n *broken, req *node.Request, h node.Holder)) breakage {
		return sharing(node.Slotted, node.OpAcquire, func(n *broken, req node.Request) node.Reply {
			if h, has := n.own(req); has {
				change(n, &req, h)
			}
			return n.ask(req)
		})
	}
	return []mutant{
		{
			name: "does not note the token of a holder that moves",
			do: own(func(n *broken, req *node.Request, _ node.Holder) {
				if n.free(*req).Has(req.Slot) {
					req.Token = 0
				}
			}),
			claims: []string{"a holder moves to a free slot and to no other", "an earlier proposal does not move a slot back"},
		},
	}
}

func downgradeMutants() []mutant {
	all := []mutant{}
	for _, op := range []node.Op{node.OpAcquire, node.OpExtend, node.OpRepair, node.OpRelease} {
		all = append(all, mutant{
			name: fmt.Sprintf("takes an exclusive %v for one of a reader", op),
			do: instead(op, func(n *broken, req node.Request) node.Reply {
				if h, has := n.own(req); has {
					req.Share = h.Share
				}
				return n.ask(req)
			}),
			claims: []string{"an exclusive request does not find a reader of its value"},
		})
	}
	return all
}

// wholeNameMutants are wrong about all holders of a name, or about what a share
// is.
func wholeNameMutants() []mutant {
	holders := func(change func(all []node.Holder) []node.Holder) misreading {
		return misreading{look: func(_ *broken, l *node.Listing) { l.Holders = change(l.Holders) }}
	}
	each := func(change func(h *node.Holder)) misreading {
		return holders(func(all []node.Holder) []node.Holder {
			for i := range all {
				change(&all[i])
			}
			return all
		})
	}
	all := []mutant{
		{
			name: "finds fault with a share after the deed",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if err := req.Share.Check(); err != nil {
					req.Share = node.Share{}
					n.ask(req)
					return node.Reply{}, err
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"a share that is not valid is an error without effect"},
		},
	}
	for what, read := range map[string]misreading{
		"lists the first holder alone":       holders(func(all []node.Holder) []node.Holder { return all[:min(len(all), 1)] }),
		"lists the last holder first":        holders(func(all []node.Holder) []node.Holder { slices.Reverse(all); return all }),
		"lists no slots":                     each(func(h *node.Holder) { h.Slot = 0 }),
		"lists holders without their tokens": each(func(h *node.Holder) { h.Token = 0 }),
		"lists holders without their expiry": each(func(h *node.Holder) { h.Until = time.Time{} }),
		"lists the number of holders wrong":  {look: func(_ *broken, l *node.Listing) { l.Reply.Holders = 1 }},
	} {
		all = append(all, mutant{name: what, read: read, claims: []string{"a listing has all holders"}})
	}
	return all
}

func shareQueueMutants() []mutant {
	return []mutant{
		{
			name: "says that a name is free for others while readers have it",
			do: misreport(func(req node.Request, r *node.Reply) {
				if req.Op == node.OpAcquire && r.Status == node.Held && r.Share.Mode != node.Exclusive && r.Rank > 0 {
					r.Status = node.Reserved
				}
			}),
			claims: []string{"a reader behind a waiting writer waits", "readers at the head are granted together", "as many waiters are granted as there are slots"},
		},
		{
			name: "moves a holder to the slot that a copy of its request asks for",
			do: sharing(node.Slotted, node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				if own, has := n.own(req); has && own.Token == req.Token && n.free(req).Has(req.Slot) {
					n.ask(node.Request{Op: node.OpRepair, Name: req.Name, Value: req.Value, Token: req.Token, TTL: req.TTL,
						Retention: req.Retention, Share: req.Share})
				}
				return n.ask(req)
			}),
			claims: []string{"a copy of a request does not move a slot"},
		},
		{
			name: "repairs no share below the fence",
			do: sharing(node.Shared, node.OpRepair, func(n *broken, req node.Request) node.Reply {
				if r := n.ask(node.Request{Op: node.OpInspect, Name: req.Name}); r.Fence > req.Token {
					return node.Reply{Status: node.Stale, Fence: r.Fence, Now: r.Now}
				}
				return n.ask(req)
			}),
			claims: []string{"a repair of a reader needs room", "a copy of a repair that comes after the release is stale", "a share is repaired though a writer raised the fence"},
		},
		{
			name: "queues those with one ticket by value alone",
			do: misreport(func(req node.Request, r *node.Reply) {
				if req.Value == "ff" && r.Rank > 0 {
					r.Rank++
				}
			}),
			claims: []string{"a waiter of another kind has its place"},
		},
	}
}

func shareWakeMutants() []mutant {
	drop := func(values ...string) garbling {
		return func(w node.Wake) []node.Wake {
			if w.Kind == node.WakeTurn && slices.Contains(values, w.Value) {
				return nil
			}
			return []node.Wake{w}
		}
	}
	return []mutant{
		{
			name:   "wakes one of a run of readers",
			tell:   drop("two"),
			claims: []string{"two of a run of readers are notified"},
		},
		{
			name:   "wakes no reader beside others",
			tell:   drop("reader"),
			claims: []string{"a reader is notified when the writer before it leaves", "a downgrade notifies readers", "a yield of a reader is for writers"},
		},
		{
			name: "raises no floor for a writer that keeps what it yields",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				reply, err := n.Node.Do(ctx, req)
				if req.Op == node.OpYield && req.Mode == node.Exclusive {
					n.count = int(req.Token)
				}
				if req.Op == node.OpAcquire && req.Mode == node.Shared && reply.Status == node.Stale && n.count == int(req.Token) {
					req.Token = 0
					return n.Node.Do(ctx, req)
				}
				return reply, err
			},
			claims: []string{"a yield that a writer keeps binds readers"},
		},
	}
}
