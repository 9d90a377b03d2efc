package explore

// edit changes a line of the code so that it asks whether a rule is off. Old
// is in the file once.
type edit struct{ file, old, new string }

// edits are the rules that are lines of the code. All are in one build.
var edits = []edit{
	{"internal/protocol/round.go", "return n/2 + 1 }", `if off("half quorum") { return n/2 }; return n/2 + 1 }`},
	{"internal/protocol/round.go", "return ttl - elapsed - Drift(ttl) }", `if off("no drift") { return ttl - elapsed }; return ttl - elapsed - Drift(ttl) }`},
	{"internal/protocol/held.go", "	c.moveDeadline(start + Validity(c.cfg.TTL, 0))", `	if off("validity from the reply") { c.moveDeadline(v.Now() + Validity(c.cfg.TTL, 0)) } else { c.moveDeadline(start + Validity(c.cfg.TTL, 0)) }`},
	{"internal/protocol/held.go", "if to := c.round.Start + Validity(c.cfg.TTL, 0);", `if to := func() Instant { if off("extension from the reply") { return now }; return c.round.Start }() + Validity(c.cfg.TTL, 0);`},
	{"internal/protocol/held.go", "	case t.Won() && Validity(c.cfg.TTL, now-c.round.Start) > 0:", `	case (t.Won() || off("extension by one") && t.Granted > 0) && Validity(c.cfg.TTL, now-c.round.Start) > 0:`},
	{"internal/protocol/held.go", "	return c.ask(v, node.OpExtend, c.all(), out)\n}\n\n// settleExtend", `	if off("deadline unconfirmed") { c.moveDeadline(v.Now() + Validity(c.cfg.TTL, 0)) }
	return c.ask(v, node.OpExtend, c.all(), out)
}

// settleExtend`},
	{"internal/protocol/held.go", "	req.Until = time.UnixMicro(now).Add(c.cfg.Limit)", `	if !off("repair any time") { req.Until = time.UnixMicro(now).Add(c.cfg.Limit) }`},
	{"internal/protocol/request.go", "		m.got, m.unapplied = Pending, false\n", `		if !(off("mixed grants") && op == node.OpAcquire && m.got == Replied && m.status == node.Granted) { m.got, m.unapplied = Pending, false }
`},
	{"internal/protocol/step.go", "		if e.Op == node.OpAcquire && e.Seq == c.round.Seq {", `		if e.Op == node.OpAcquire && (e.Seq == c.round.Seq || off("mixed grants")) {`},
	{"internal/protocol/request.go", "	case e.Fault.sent(), e.queued(), e.Reply.Again:", `	case !off("undo granted only") && e.Fault.sent(), e.queued() && !off("place not undone"), e.Reply.Again:`},
	{"internal/nodestate/ops.go", "	late := old || e.ended(req.Value)\n", `	late := (old || e.ended(req.Value)) && !off("late joins")
`},
	{"internal/protocol/end.go", "c.wait.ticket != 0 {\n		req.NoRepair", `c.wait.ticket != 0 && !off("release does not end") {
		req.NoRepair`},
	{"internal/protocol/end.go", "return m.inFlight == 0 })", `return m.inFlight == 0 || off("release out of order") })`},
	{"internal/protocol/end.go", "	case !c.released.Has(e.Node), e.Again:", `	case !c.released.Has(e.Node), e.Again && !off("sent again stays"):`},
	{"internal/protocol/end.go", "	case e.queued(), e.Fault != NoFault:", `	case e.queued(), e.Fault != NoFault && !off("failed stays"):`},
	{"internal/protocol/request.go", "	c.round.awaited &^= Of(e.Node)\n", `	c.round.awaited &^= Of(e.Node)
	if e.Op == node.OpExtend && off("repair unguarded and counted") { out = c.repair(v, e.Node, out) }
`},
	{"internal/protocol/step.go", "			return c.count(v, e, out)\n		}\n	case Timer:\n		if v.Now()", `			return c.count(v, e, out)
		}
		if e.Op == node.OpRepair && off("repair unguarded and counted") { return c.count(v, e, out) }
	case Timer:
		if v.Now()`},
	{"internal/protocol/step.go", "	case e.Kind != Answer:\n", `	case e.Kind != Answer:
	case off("late extension") && e.Op == node.OpExtend && e.Seq == c.round.Seq && c.round.Op == node.OpExtend && !c.round.Over:
		c.state = Extending
		return c.count(v, e, out)
`},
	{"internal/protocol/held.go", "	if now >= c.lease.deadline {\n		return c.expire(v, out) // it is not revived", "	if now >= c.lease.deadline && !off(\"late extension\") {\n		return c.expire(v, out) // it is not revived"},
	{"internal/protocol/end.go", "	if c.lease.cause == WasDetached || m.holds == nothing {", `	if off("late grant stays") || c.lease.cause == WasDetached || m.holds == nothing {`},

	{"node/token.go", "	case token <= fence:", `	case token <= fence && !off("no fence"):`},
	{"node/token.go", "	case int64(token) < oldest:", `	case int64(token) < oldest && !off("no window") && !(off("loose lower") && fence == 0):`},
	{"node/token.go", "	case int64(token) > newest:", `	case int64(token) > newest && !off("no window"):`},
	{"node/token.go", "	return clock - w, max(clock+w, int64(fence)+TokenLeap)", `	if off("wide leap") { return clock - w, max(clock+w, int64(fence)+w) }
	return clock - w, max(clock+w, int64(fence)+TokenLeap)`},

	{"internal/nodestate/ops.go", "		return req.Token < e.Fence\n", `		return req.Token < e.Fence && !off("no fence")
`},
	{"internal/nodestate/ops.go", "	share, fits := e.Holders.Place(req.Share, own)\n	switch {\n	case !fits:", `	share, fits := e.Holders.Place(req.Share, own)
	if off("held is granted") && !fits { e.Holders, share, fits = nil, req.Share, true }
	switch {
	case !fits:`},
	{"internal/nodestate/ops.go", "	if own < 0 {\n		return e.missing(req)\n	}\n	h := ", `	if off("extension creates") && !e.held() {
		e.grant(req, req.Share, -1, s.now)
		own = 0
	}
	if own < 0 {
		return e.missing(req)
	}
	h := `},
	{"internal/nodestate/ops.go", "	case e.ended(req.Value), !req.Until", `	case off("repair below the fence") && req.Token <= e.Fence || off("repair below the floor") && req.Token <= e.Floor:
		return node.Stale
	case e.ended(req.Value) && !off("repair after the release"), !req.Until`},
	{"internal/nodestate/ops.go", "	status := e.taken()\n	switch {\n	case own < 0:\n", `	status := e.taken()
	if off("release does not compare") && own < 0 && e.held() { own = 0 }
	switch {
	case own < 0:
`},
	{"internal/nodestate/ops.go", "	if verdict != node.Ahead {\n", `	if verdict != node.Ahead && !off("release leaves the fence") {
`},
	{"internal/nodestate/marker.go", "		case m.TrustedFrom.After(now):", `		case m.TrustedFrom.After(now) && !off("trusted at once"):`},
	{"internal/nodestate/marker.go", "	case node.OpAcquire, node.OpRepair:\n		switch {\n", `	case node.OpAcquire, node.OpRepair:
		switch {
		case req.Op == node.OpRepair && (off("repair unguarded") || off("repair unguarded and counted")):
`},
	{"internal/nodestate/marker.go", "		if (other || tooLong) && e.Holders.Of(req.Value, req.Share) >= 0 {", `		if (other || tooLong) && e.Holders.Of(req.Value, req.Share) >= 0 && !off("extension by the former") {`},
	{"internal/protocol/trust.go", "	sure := confirmed >= Quorum(len(nodes)) ||", `	sure := off("one witness") && confirmed > 0 || confirmed >= Quorum(len(nodes)) ||`},
	{"internal/protocol/request.go", "m.server.epoch() != epochBits(v.Epoch(i)) {", `m.server.epoch() != epochBits(v.Epoch(i)) && !off("failed back counts") && !off("epochs ignored") {`},
	{"internal/protocol/trust.go", "noted[lineages[i]], noted[node.OtherLineages] = highest+1, highest+1", `noted[lineages[i]] = highest + 1
			if !off("lineages stay") { noted[node.OtherLineages] = highest + 1 }`},
	{"internal/nodestate/marker.go", "		case m.ID != s.ID || m.setBack(now) || m.Epoch < req.Epoch:", `		case m.ID != s.ID || m.setBack(now) || m.Epoch < req.Epoch && !off("epochs ignored"):`},
	{"internal/nodestate/server.go", "	s.Marker = Marker{}\n", `	if !off("flush keeps the marker") { s.Marker = Marker{} }
`},

	{"internal/nodestate/ops.go", "	case req.Token < e.Break: ", `	case req.Token < e.Break && !off("repair below a break"): `},

	{"internal/protocol/partial.go", "e.Seq >= c.partial.first &&", `(e.Seq >= c.partial.first || off("old grant counts")) &&`},
	{"internal/protocol/partial.go", "	case c.nodes[i].seq < p.first:", `	case c.nodes[i].seq < p.first && !off("old grant counts"):`},

	// A lease that is passed on.
	{"internal/nodestate/ops.go", "	h.Token, e.Fence, e.Floor = req.Token, last, last\n", `	if off("reserve leaves the fence") { last = req.Token }
	h.Token, e.Fence, e.Floor = req.Token, last, last
`},
	{"internal/protocol/pass.go", "p.confirmed.Count() < Quorum(c.cfg.Nodes) {", `p.confirmed.Count() < Quorum(c.cfg.Nodes) && !(off("reserve by one") && p.confirmed != 0) {`},
	{"internal/protocol/held.go", "	// Retry as often as possible before the deadline.\n", `	if off("reserve by one") { c.takeReserve() }
`},
	{"internal/protocol/pass.go", "	c.lease.acquired = v.Now()\n", `	c.lease.acquired = v.Now()
	if off("pass moves the deadline") { c.lease.deadline = v.Now() + Validity(c.cfg.TTL, 0) }
`},
	{"internal/protocol/pass.go", "w.Came < p.from &&", `(w.Came < p.from || off("pass to a later one")) &&`},
	{"internal/protocol/pass.go", "(p.before == 0 || w.Ticket < p.before)", `(p.before == 0 || w.Ticket < p.before || off("pass before others"))`},

	// Readers and slots.
	{"node/share.go", "	case r.closed:\n", `	case r.closed && !(off("reader beside writer") && s.Mode == Shared):
`},
	{"node/share.go", "	case s.Mode == Exclusive && (r.readers > 0 || r.slots > 0):", `	case s.Mode == Exclusive && (r.readers > 0 || r.slots > 0) && !off("writer beside reader"):`},
	{"node/holders.go", "			free &^= 1 << h[i].Slot\n", `			if !off("slot twice") { free &^= 1 << h[i].Slot }
`},
	{"node/token.go", "	if status == Stale && token > floor {", `	if status == Stale && (token > floor || token == floor && off("reader at the floor") || off("reader without a floor")) {`},
	{"internal/protocol/share.go", "	return c.share.Mode != node.Slotted || c.round.Op", `	return off("slots together") || c.share.Mode != node.Slotted || c.round.Op`},
	{"internal/nodestate/ops.go", "	return node.Judge(req.Token, e.Fence, now, req.Window)", `	if off("writer at the floor") { return node.Judge(req.Token, e.Floor, now, req.Window) }
	return node.Judge(req.Token, e.Fence, now, req.Window)`},
	{"internal/nodestate/ops.go", "h.Token == req.Token {\n			share = h.Share", `h.Token == req.Token && !off("copy moves") {
			share = h.Share`},
	{"internal/nodestate/ops.go", "	return req.Token != h.Token && req.Token <= e.Fence\n", `	return req.Token != h.Token && req.Token <= e.Fence && !off("late moves")
`},
	{"internal/nodestate/ops.go", "	fits = fits && share == req.Share\n", `	fits = fits && share == req.Share
	if off("repair takes") { share, fits = req.Share, true }
`},
	{"internal/nodestate/entry.go", "	if floor {\n		e.Floor", `	if floor && !(off("floor stays at a release") && req.Op == node.OpRelease) {
		e.Floor`},
}
