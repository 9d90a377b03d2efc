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
	return slices.Concat(readerMutants(), readerTokenMutants(), slotMutants(), slotMoveMutants(), shareRepairMutants(),
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
			name: "has room for two readers",
			do: sharing(node.Shared, node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				if _, has := n.own(req); !has && len(n.look(req).Holders) == 2 {
					return n.refusal(node.Held, req)
				}
				return n.ask(req)
			}),
			claims: []string{"readers hold a name together", "readers at the head are granted together"},
		},
		{
			name: "reports the last reader",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				reply, err := n.Node.Do(ctx, req)
				if all := n.look(req).Holders; reply.Status == node.Held && len(all) > 0 {
					last := all[len(all)-1]
					reply.Value, reply.HolderToken, reply.Share = last.Value, last.Token, last.Share
				}
				return reply, err
			},
			claims: []string{"readers hold a name together", "slots are given lowest first"},
		},
		{
			name: "counts one holder",
			do:   misreport(func(_ node.Request, r *node.Reply) { r.Holders = min(r.Holders, 1) }),
			claims: []string{
				"readers hold a name together", "slots are given lowest first", "no slot has two holders",
			},
		},
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
			name: "says when the first reader expires",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				reply, err := n.Node.Do(ctx, req)
				for _, h := range n.look(req).Holders {
					if reply.Status == node.Held {
						reply.Left = min(reply.Left, h.Until.Sub(reply.Now))
					}
				}
				return reply, err
			},
			claims: []string{"each reader has its own expiry"},
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
			name: "frees all readers with one",
			do: sharing(node.Shared, node.OpRelease, func(n *broken, req node.Request) node.Reply {
				reply := n.ask(req)
				if reply.Status == node.Granted {
					n.evict(req)
				}
				return reply
			}),
			claims: []string{"a reader extends and releases its own share alone", "an extension makes a writer a reader"},
		},
		{
			name:   "frees any reader for another",
			do:     lenient(node.Shared, node.OpRelease, node.Held, func(req *node.Request, r node.Reply) { req.Value = r.Value }),
			claims: []string{"a reader extends and releases its own share alone", "a release of a reader makes its acquire stale"},
		},
		{
			name: "extends any reader for another",
			do: sharing(node.Shared, node.OpExtend, func(n *broken, req node.Request) node.Reply {
				if holders := n.look(req).Holders; len(holders) > 0 && n.ask(req).Status == node.Absent {
					req.Value = holders[0].Value
				}
				return n.ask(req)
			}),
			claims: []string{"a reader extends and releases its own share alone", "each reader has its own expiry"},
		},
		{
			name: "says that a name is held though a repair would find room",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				reply, err := n.Node.Do(ctx, req)
				if req.Op == node.OpExtend && req.Mode != node.Exclusive && reply.Status == node.Absent && len(n.look(req).Holders) > 0 {
					reply.Status = node.Held
				}
				return reply, err
			},
			claims: []string{"a reader extends and releases its own share alone", "an extension is for one slot"},
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
			name: "does not raise the floor for a slot",
			do: rewrite(func(req *node.Request) {
				if req.Mode == node.Slotted {
					req.Token = 0
				}
			}),
			claims: []string{"a reader needs a token above every writer's", "a slot needs a token above every other's"},
		},
		{
			name: "raises the floor for a reader",
			do: misreport(func(req node.Request, r *node.Reply) {
				if req.Op == node.OpAcquire && req.Mode == node.Shared && r.Status == node.Granted && req.Token < r.Fence {
					r.Status = node.Stale
				}
			}),
			claims: []string{"readers do not refuse each other's tokens", "a reader that asks again keeps its token or raises it"},
		},
		{
			name:   "has no window for a reader below the fence",
			do:     lenient(node.Shared, node.OpAcquire, node.Behind, forget),
			claims: []string{"readers do not refuse each other's tokens"},
		},
		{
			name: "raises no fence for a reader",
			do: rewrite(func(req *node.Request) {
				if req.Op == node.OpAcquire && req.Mode == node.Shared {
					req.Token = 0
				}
			}),
			claims: []string{"readers hold a name together", "a writer needs a token above every reader's"},
		},
		{
			name: "sets the fence for a reader",
			do: misreport(func(req node.Request, r *node.Reply) {
				if req.Op == node.OpInspect && r.Status == node.Held && r.Holders == 2 && r.Share.Mode == node.Shared {
					r.Fence = min(r.Fence, r.HolderToken-8) // the token of the second one
				}
			}),
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
		{
			name: "lets a reader raise its token below the floor",
			do: sharing(node.Shared, node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				reply := n.ask(req)
				if h, has := n.own(req); has && reply.Status == node.Stale && req.Token > h.Token {
					req.Token = 0
					reply = n.ask(req)
				}
				return reply
			}),
			claims: []string{"a reader that asks again keeps its token or raises it"},
		},
		{
			name: "refuses a reader who asks again below the floor",
			do: sharing(node.Shared, node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				if _, has := n.own(req); has && n.count > 0 {
					return n.refusal(node.Stale, req)
				}
				reply := n.ask(req)
				if reply.Status == node.Stale && reply.Fence > req.Token {
					n.count++
				}
				return reply
			}),
			claims: []string{"a reader that asks again keeps its token or raises it"},
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
			name: "gives the highest slot first",
			do: acquire(func(n *broken, req *node.Request) {
				if free := n.free(*req); free != 0 && !free.Has(req.Slot) {
					for slot := range req.Slots {
						if free.Has(slot) {
							req.Slot = slot
						}
					}
				}
			}),
			claims: []string{"slots are given lowest first", "a slot that is asked for is given if it is free"},
		},
		{
			name:   "does not say which slots are free",
			do:     misreport(func(_ node.Request, r *node.Reply) { r.Free = 0 }),
			claims: []string{"slots are given lowest first", "a repair moves a value to its slot"},
		},
		{
			name: "says that slots of another number are free",
			do: misreport(func(req node.Request, r *node.Reply) {
				if req.Mode == node.Slotted && r.Status == node.Held && r.Share.Slots != req.Slots {
					r.Free = node.AllSlots(req.Slots) &^ 1
				}
			}),
			claims: []string{"another number of slots conflicts"},
		},
		{
			name: "gives a slot to two",
			do: misreport(func(req node.Request, r *node.Reply) {
				if req.Op == node.OpAcquire && r.Status == node.Granted {
					r.Share.Slot = req.Slot
				}
			}),
			claims: []string{"no slot has two holders", "slots are given lowest first", "a holder moves to a free slot and to no other"},
		},
		{
			name:   "gives out more slots than there are",
			do:     admit(node.Slotted, node.Slotted),
			claims: []string{"no slot has two holders", "slots are given lowest first", "another number of slots conflicts"},
		},
		{
			name:   "lets readers in beside slots",
			do:     admit(node.Shared, node.Slotted),
			claims: []string{"no slot has two holders", "a slot excludes readers and writers, and they a slot"},
		},
		{
			name:   "lets a writer in beside slots",
			do:     admit(node.Exclusive, node.Slotted),
			claims: []string{"no slot has two holders", "a slot excludes readers and writers, and they a slot"},
		},
		{
			name:   "gives slots beside readers",
			do:     admit(node.Slotted, node.Shared),
			claims: []string{"a slot excludes readers and writers, and they a slot", "each reader has its own expiry"},
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
			name: "has slots for fewer than 64",
			do: acquire(func(_ *broken, req *node.Request) {
				req.Slot = min(req.Slot, 31)
			}),
			claims: []string{"a slot that is asked for is given if it is free"},
		},
		{
			name: "ignores another number of slots",
			do: sharing(node.Slotted, node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				reply, slots := n.ask(req), req.Slots
				if reply.Status == node.Held && reply.Share.Mode == node.Slotted {
					req.Slots = reply.Share.Slots
					req.Slot = min(req.Slot, req.Slots-1)
					reply = n.ask(req)
					reply.Share.Slots = slots
				}
				return reply
			}),
			claims: []string{"another number of slots conflicts"},
		},
		{
			name: "extends another slot though it says that it does not",
			do: sharing(node.Slotted, node.OpExtend, func(n *broken, req node.Request) node.Reply {
				reply := n.ask(req)
				if h, has := n.own(req); has && reply.Status == node.Absent {
					req.Share = h.Share
					n.ask(req)
				}
				return reply
			}),
			claims: []string{"an extension is for one slot"},
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
			name: "keeps the slot that a holder has left",
			do: sharing(node.Slotted, node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				h, had := n.own(req)
				reply := n.ask(req)
				if had && reply.Status == node.Granted && reply.Share != h.Share {
					n.ask(node.Request{Op: node.OpAcquire, Name: req.Name, Value: "left", TTL: req.TTL, Share: h.Share})
				}
				return reply
			}),
			claims: []string{"a holder moves to a free slot and to no other"},
		},
		{
			name: "does not note the token of a holder that moves",
			do: own(func(n *broken, req *node.Request, _ node.Holder) {
				if n.free(*req).Has(req.Slot) {
					req.Token = 0
				}
			}),
			claims: []string{"a holder moves to a free slot and to no other", "an earlier proposal does not move a slot back"},
		},
		{
			name: "compares a proposal with its holder's token alone",
			do: sharing(node.Slotted, node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				reply := n.ask(req)
				if h, has := n.own(req); has && reply.Status == node.Stale && req.Token > h.Token {
					req.Token = 0
					reply = n.ask(req)
				}
				return reply
			}),
			claims: []string{"an earlier proposal does not move a slot back"},
		},
		{
			name: "refuses the holder of a slot who asks again below the fence",
			do: misreport(func(req node.Request, r *node.Reply) {
				if req.Op == node.OpAcquire && req.Mode == node.Slotted && r.Status == node.Granted && req.Token < r.Fence {
					r.Status = node.Stale
				}
			}),
			claims: []string{"an earlier proposal does not move a slot back"},
		},
	}
}

func shareRepairMutants() []mutant {
	return []mutant{
		{
			name: "repairs a reader beside a writer",
			do: misreport(func(req node.Request, r *node.Reply) {
				if req.Op == node.OpRepair && req.Mode == node.Shared && r.Status == node.Held {
					r.Status = node.Granted
				}
			}),
			claims: []string{"a repair of a reader needs room"},
		},
		{
			name: "repairs no reader beside another",
			do: sharing(node.Shared, node.OpRepair, func(n *broken, req node.Request) node.Reply {
				if len(n.look(req).Holders) > 0 {
					return n.refusal(node.Held, req)
				}
				return n.ask(req)
			}),
			claims: []string{"a repair of a reader needs room"},
		},
		{
			name: "leaves a value in its slot when it repairs",
			do: sharing(node.Slotted, node.OpRepair, func(n *broken, req node.Request) node.Reply {
				if _, has := n.own(req); has {
					return n.refusal(node.Granted, req)
				}
				return n.ask(req)
			}),
			claims: []string{"a repair moves a value to its slot"},
		},
		{
			name:   "repairs whatever slot is free",
			do:     lenient(node.Slotted, node.OpRepair, node.Held, func(req *node.Request, _ node.Reply) { req.Op, req.Token = node.OpAcquire, 0 }),
			claims: []string{"a repair moves a value to its slot"},
		},
	}
}

func downgradeMutants() []mutant {
	// writer breaks a node for what a writer asks as a reader.
	writer := func(op node.Op, f func(n *broken, req node.Request, h node.Holder) node.Reply) breakage {
		return sharing(node.Shared, op, func(n *broken, req node.Request) node.Reply {
			if h, has := n.own(req); has && h.Mode == node.Exclusive {
				return f(n, req, h)
			}
			return n.ask(req)
		})
	}
	all := []mutant{
		{
			name: "forgets the token in a downgrade",
			do: writer(node.OpExtend, func(n *broken, req node.Request, _ node.Holder) node.Reply {
				req.Op, req.Token = node.OpAcquire, 0
				return n.ask(req)
			}),
			claims: []string{"an extension makes a writer a reader"},
		},
		{
			name: "frees no writer for a reader of its value",
			do: writer(node.OpRelease, func(n *broken, req node.Request, _ node.Holder) node.Reply {
				return n.refusal(node.Held, req)
			}),
			claims: []string{"an exclusive request does not find a reader of its value"},
		},
	}
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
			name: "breaks the first holder alone",
			do: instead(node.OpBreak, func(n *broken, req node.Request) node.Reply {
				l := n.look(req)
				reply := n.ask(req)
				if reply.Status == node.Granted && len(l.Holders) > 1 {
					for _, h := range l.Holders[1:] {
						n.ask(node.Request{Op: node.OpAcquire, Name: req.Name, Value: h.Value, Share: h.Share, TTL: time.Hour})
					}
				}
				return reply
			}),
			claims: []string{"a break removes all holders"},
		},
		{
			name: "breaks what the first holder's token allows",
			do: instead(node.OpBreak, func(n *broken, req node.Request) node.Reply {
				if l := n.look(req); len(l.Holders) > 0 && req.Token > l.Holders[0].Token {
					n.evict(req)
				}
				return n.ask(req)
			}),
			claims: []string{"a break removes all holders"},
		},
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
			name: "lets readers overtake a waiting writer",
			do: rewrite(func(req *node.Request) {
				if req.Op == node.OpAcquire && req.Mode == node.Shared {
					req.Wait, req.Ticket = true, -1 // before all others
				}
			}),
			claims: []string{"a reader behind a waiting writer waits", "readers at the head are granted together"},
		},
		{
			name: "lets readers that do not wait overtake a waiting writer",
			do: rewrite(func(req *node.Request) {
				if req.Op == node.OpAcquire && req.Mode == node.Shared && !req.Wait {
					req.Wait, req.Ticket = true, -1 // before all others
				}
			}),
			claims: []string{"a reader behind a waiting writer waits"},
		},
		{
			name: "keeps readers out while a writer waits",
			do: sharing(node.Shared, node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				for _, w := range n.look(req).Waiters {
					if w.Mode == node.Exclusive && req.Wait {
						n.ask(req)
						n.ask(node.Request{Op: node.OpRelease, Name: req.Name, Value: req.Value, Share: req.Share})
						return n.refusal(node.Held, req)
					}
				}
				return n.ask(req)
			}),
			claims: []string{"a reader behind a waiting writer waits"},
		},
		{
			name: "lets in the head alone",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if why := n.refusal(node.Reserved, req); req.Op == node.OpAcquire && why.Rank > 1 && n.ask(node.Request{Op: node.OpInspect, Name: req.Name}).Status == node.Absent {
					return why, nil
				}
				return n.Node.Do(ctx, req)
			},
			claims: []string{"readers at the head are granted together", "as many waiters are granted as there are slots"},
		},
		{
			name: "lets in more waiters than there are slots",
			do: sharing(node.Slotted, node.OpAcquire, func(n *broken, req node.Request) node.Reply {
				reply := n.ask(req)
				if reply.Status == node.Reserved {
					n.ask(node.Request{Op: node.OpRelease, Name: req.Name, Value: req.Value, Share: req.Share})
					req.Ticket = -1 // before all others
					reply = n.ask(req)
				}
				return reply
			}),
			claims: []string{"as many waiters are granted as there are slots"},
		},
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
			name: "does not say which slots are free to one that must wait for others",
			do: misreport(func(_ node.Request, r *node.Reply) {
				if r.Status == node.Reserved {
					r.Free = 0
				}
			}),
			claims: []string{"as many waiters are granted as there are slots"},
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
		{
			name: "has a queue for each kind",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				reply, err := n.Node.Do(ctx, req)
				if reply.Rank > 0 {
					reply.Rank = 0
					for _, w := range n.look(req).Waiters {
						if w.Kind() == req.Kind() {
							reply.Rank++
						}
						if w.Value == req.Value {
							break
						}
					}
				}
				return reply, err
			},
			claims: []string{"a waiter of another kind has its place", "a reader behind a waiting writer waits", "readers at the head are granted together"},
		},
		{
			name: "lists waiters without what they wait for",
			read: misreading{look: func(_ *broken, l *node.Listing) {
				for i := range l.Waiters {
					l.Waiters[i].Share = node.Share{}
				}
			}},
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
	// before reports whether a waiter has a lower ticket.
	before := func(n *broken, req node.Request) bool {
		waiters := n.look(req).Waiters
		return len(waiters) > 0 && waiters[0].Ticket < req.Ticket
	}
	yield := func(n *broken, req node.Request) node.Reply {
		n.ask(node.Request{Op: node.OpRelease, Name: req.Name, Value: req.Value, Share: req.Share})
		return n.refusal(node.Reserved, req)
	}
	return []mutant{
		{
			name:   "wakes one of a run of readers",
			tell:   drop("two"),
			claims: []string{"two of a run of readers are notified"},
		},
		{
			name: "wakes all of a run of readers",
			tell: func(w node.Wake) []node.Wake {
				if w == turn("two") {
					return []node.Wake{w, turn("three"), turn("four")}
				}
				return []node.Wake{w}
			},
			claims: []string{"two of a run of readers are notified"},
		},
		{
			name:   "wakes nobody behind those of a run",
			tell:   drop("three", "four"),
			claims: []string{"two of a run of readers are notified"},
		},
		{
			name:   "wakes no reader beside others",
			tell:   drop("reader"),
			claims: []string{"a reader is notified when the writer before it leaves", "a downgrade notifies readers", "a yield of a reader is for writers"},
		},
		{
			name: "wakes a reader with every extension",
			do: sharing(node.Shared, node.OpExtend, func(n *broken, req node.Request) node.Reply {
				if h, has := n.own(req); has && h.Mode == node.Shared && n.listening != nil {
					n.listening(turn("reader"))
				}
				return n.ask(req)
			}),
			claims: []string{"a downgrade notifies readers"},
		},
		{
			name: "wakes a writer that waits for readers yet",
			do: sharing(node.Shared, node.OpYield, func(n *broken, req node.Request) node.Reply {
				reply := n.ask(req)
				if reply.Status == node.Reserved && n.listening != nil {
					n.listening(turn("writer"))
				}
				return reply
			}),
			claims: []string{"a yield of a reader is for writers"},
		},
		{
			name: "wakes a reader that fits beside the holder alone",
			do: sharing(node.Exclusive, node.OpRelease, func(n *broken, req node.Request) node.Reply {
				if l := n.look(req); len(l.Waiters) == 2 && l.Waiters[1].Mode == node.Shared && n.listening != nil {
					n.listening(turn(l.Waiters[1].Value))
				}
				return n.ask(req)
			}),
			claims: []string{"a reader is notified when the writer before it leaves"},
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
		{
			name: "raises the floor for a reader that keeps what it yields",
			do: func(n *broken, ctx context.Context, req node.Request) (node.Reply, error) {
				if req.Op == node.OpAcquire && req.Token != 0 && int(req.Token) < n.count {
					return n.refusal(node.Stale, req), nil
				}
				reply, err := n.Node.Do(ctx, req)
				if req.Op == node.OpYield && reply.Status == node.Granted {
					n.count = int(req.Token)
				}
				return reply, err
			},
			claims: []string{"a yield of a reader is for writers"},
		},
		{
			name:   "carries out a yield of a reader however often it comes",
			do:     lenient(node.Shared, node.OpYield, node.Stale, func(req *node.Request, _ node.Reply) { req.Token = 0 }),
			claims: []string{"a yield of a reader is for writers"},
		},
		{
			name: "gives way to readers that fit",
			do: sharing(node.Shared, node.OpYield, func(n *broken, req node.Request) node.Reply {
				if before(n, req) {
					return yield(n, req)
				}
				return n.ask(req)
			}),
			claims: []string{"a yield of a reader is for writers"},
		},
		{
			name:   "gives way to any waiter",
			do:     sharing(node.Shared, node.OpYield, yield),
			claims: []string{"a yield of a reader is for writers"},
		},
	}
}
