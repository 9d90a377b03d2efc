package sim

// The mutants of readers and slots. They are run with the others.
func init() {
	mutants = append(mutants, shareMutants...)
	others = append(others, shareOthers...)
}

var shareMutants = []mutant{
	{"a reader is admitted beside a writer", "node/share.go",
		"	case r.closed:\n", "	case r.closed && s.Mode != Shared:\n", Plain},
	{"a writer is admitted beside readers", "node/share.go",
		"	case s.Mode == Exclusive && (r.readers > 0 || r.slots > 0):", "	case s.Mode == Exclusive && r.slots > 0:", Plain},
	{"a slot is given twice", "node/holders.go",
		"			free &^= 1 << h[i].Slot\n", "			free &^= 1 << h[i].Slot * SlotSet(i%2)\n", Plain},
	{"grants of different slots are counted together", "internal/protocol/share.go",
		"	return c.share.Mode != node.Slotted || c.round.Op != node.OpAcquire || m.share.Slot == slot\n", "	return true\n", Plain},
	{"grants of different slots are gathered together", "internal/protocol/gather.go",
		"	if _, n := c.agreed(g.granted); n < Quorum(c.cfg.Nodes) {", "	if g.granted.Count() < Quorum(c.cfg.Nodes) {", Plain},
	{"a release does not raise the floor", "internal/nodestate/entry.go",
		"	if floor {\n", "	if floor && req.Op != node.OpRelease {\n", Plain},
	{"a reader is not compared with the floor", "node/token.go",
		"	if status == Stale && token > floor {", "	if status == Stale {", Plain},
	{"a writer is compared with the floor", "internal/nodestate/ops.go",
		"	return node.Judge(req.Token, e.Fence, now, req.Window)", "	return node.Judge(req.Token, e.Floor, now, req.Window)", Plain},
	{"a late proposal moves a slot", "internal/nodestate/ops.go",
		"	return req.Token != h.Token && req.Token <= e.Fence\n", "	return false\n", Plain},
	{"a copy of a request moves a slot", "internal/nodestate/ops.go",
		"h.Token == req.Token {\n			share = h.Share", "h.Token == req.Token && false {\n			share = h.Share", Rare},
	{"a downgrade leaves a writer on a node", "internal/nodestate/ops.go",
		"	h.Until, h.Share = s.now.Add(req.TTL), req.Share\n", "	h.Until = s.now.Add(req.TTL)\n", Plain},
	{"a downgrade is not sent to the nodes", "internal/protocol/share.go",
		"		c.share.Mode = node.Shared\n	}\n	return c.extend(v, out)", "		c.share.Mode = node.Shared\n	}\n	return append(out, Effect{Kind: Extended})", Plain},
	{"a late request makes a reader a writer again", "node/holders.go",
		"		if h[i].Value == value && (share.Mode != Exclusive || h[i].Mode == Exclusive) {", "		if h[i].Value == value {", Plain},
	{"a repair takes the slot of another", "internal/nodestate/ops.go",
		"	fits = fits && share == req.Share\n", "	if req.Mode == node.Slotted {\n		share, fits = req.Share, true\n	}\n", Plain},
	{"a node that gave another slot counts as extended", "internal/nodestate/ops.go",
		"	if h.Share != req.Share && !downgraded {\n		return node.Absent", "	if h.Share != req.Share && !downgraded {\n		return node.Granted", Plain},
}

// shareOthers are found by tests that were made for them.
var shareOthers = []struct{ name, file, old, wrong, test string }{
	{"a value is used again although a higher proposal is in flight", "internal/protocol/share.go",
		"(c.inFlight > 0 || c.unsure) && max(c.earlier.most, c.proposed) > c.token", "false", "TestHigherProposalThatComesLateMovesNoSlot ./internal/protocol"},
	{"the slot of the first grant is taken", "internal/protocol/share.go",
		"		c.share.Slot, _ = c.agreed(c.all())\n", "		c.share.Slot = c.nodes[0].share.Slot\n", "TestNoOrderOfArrivalGivesASlotTwice ./internal/protocol"},
	{"grants of different slots are one majority", "internal/protocol/share.go",
		"	return c.share.Mode != node.Slotted || c.round.Op != node.OpAcquire || m.share.Slot == slot\n", "	return true\n", "TestNoOrderOfArrivalGivesASlotTwice ./internal/protocol"},
}
