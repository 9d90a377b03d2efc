package model

// This file is the instances that are searched: each has just what a rule, or a
// few of them, is about, so that it can be searched to its end.

// Arena is an instance with a name.
type Arena struct {
	Name   string
	Bounds Bounds
	// Small arenas are searched to their end by the tests, the others by
	// make model.
	Small bool
}

// base is two clients on three nodes, with one attempt each. A lease of it is
// valid for one tick.
func base(change func(b *Bounds)) Bounds {
	b := Bounds{Clients: 2, Nodes: 3, TTL: 2, Drift: 1, Window: 1, Tries: [MaxClients]int{1, 1}, Proposals: []int8{0}}
	change(&b)
	return b
}

const w = unit // the window of the base, in units

// holds is how the first client comes to hold the lock on two nodes, with the third
// request still on its way.
func holds(a, b int8) []Step {
	return []Step{{Kind: Begin}, {Kind: Carry, Node: a}, {Kind: Carry, Node: b}}
}

func holdsWith(token int8) []Step {
	steps := holds(0, 1)
	steps[0].Arg = token
	return steps
}

// extending is how the first client comes to hold the lock, lets a tick pass,
// and has its extension carried out by one node.
func extending(a, b int8) []Step {
	return append(holds(a, b), Step{Kind: Tick}, Step{Kind: Extend}, Step{Kind: Carry, Node: a, Arg: extendAt})
}

// repairing is how it comes to hold the lock and extends it at once, and the
// third node is being sent a repair.
func repairing() []Step {
	ext := func(node int8) Step { return Step{Kind: Carry, Node: node, Arg: extendAt} }
	return append(holds(0, 1), Step{Kind: Extend}, ext(0), ext(1), ext(2))
}

func remark(node int8, as Mark) Step { return Step{Kind: Remark, Node: node, Arg: int8(as)} }

// Arenas returns all of them.
func Arenas() []Arena {
	return []Arena{
		{"messages late, lost or never; client clocks off by up to the window and beyond", base(tokens), false},
		{"the same, with fewer clocks", base(fewTokens), false},
		{"the same, and answers are late too", base(lateAnswers), true},
		{"a request is carried out twice", base(func(b *Bounds) { fewTokens(b); b.Duplicates = 1 }), false},
		{"two attempts of one client", base(twoTries), true},
		{"two attempts of one client, longer leases", base(func(b *Bounds) { twoTries(b); b.TTL = 3 }), false},
		{"two attempts of both", base(func(b *Bounds) { b.Tries = [MaxClients]int{2, 2} }), false},
		{"a second proposal in an attempt", base(again), false},
		{"a node restarts without its data", base(loss), true},
		{"the same, with more clocks", base(func(b *Bounds) { fewTokens(b); b.EmptyStart = 1 }), false},
		{"two restarts", base(func(b *Bounds) { loss(b); b.EmptyStart = 2 }), false},
		{"a node restarts with old data", base(oldData), false},
		{"the same, with a client clock far behind", base(cutTail), false},
		{"a node is flushed", base(func(b *Bounds) { fewTokens(b); b.Flushes = 1 }), false},
		{"a client clock far ahead, and a restart", base(farAhead), false},
		{"a client clock far behind, and a restart", base(farBehind), false},
		{"node clocks are set back, and a restart", base(clocksBack), false},
		{"tokens creep ahead of the window, and a restart", base(creep), false},
		{"an extension", base(extension), true},
		{"two extensions", base(func(b *Bounds) { extension(b); b.Extensions = [MaxClients]int{2, 2} }), false},
		{"an extension, and a restart", base(extensionLoss), false},
		{"repair", base(repair), false},
		{"repair, and a restart", base(repairLoss), false},
		{"repair after two extensions, and a restart", base(repairLater), false},
		{"repair, and no ghosts", base(repairGhosts), false},
		{"repair whose answers are lost, and no ghosts", base(repairAlone), true},
		{"another list, and the hand-over to it", base(handOver), false},
		{"the same, under a lease that is extended", base(handOverExtended), false},
		{"four nodes", base(func(b *Bounds) { b.Nodes = 4 }), false},
	}
}

func tokens(b *Bounds)      { b.Proposals, b.Raise = []int8{-w - 1, -w, 0, w, w + 1}, true }
func fewTokens(b *Bounds)   { b.Proposals, b.Raise = []int8{-w, 0, w}, true }
func lateAnswers(b *Bounds) { fewTokens(b); b.LateReply = true }
func twoTries(b *Bounds)    { b.Tries[0], b.NoGhosts = 2, true }
func again(b *Bounds)       { b.Again, b.Proposals = 1, []int8{0, w} }
func loss(b *Bounds)        { b.EmptyStart, b.Proposals = 1, []int8{-w, w} }
func oldData(b *Bounds)     { b.StaleStart, b.Proposals = 1, []int8{0, w} }
func cutTail(b *Bounds)     { b.StaleStart, b.Proposals, b.LongKept = 1, []int8{-5 * w, 0}, true }
func farBehind(b *Bounds)   { b.EmptyStart, b.Proposals, b.LongKept = 1, []int8{-5 * w, 0}, true }
func farAhead(b *Bounds)    { b.EmptyStart, b.Proposals, b.LongKept = 1, []int8{0, 5 * w}, true }

func clocksBack(b *Bounds) {
	b.Skew, b.Steps, b.EmptyStart, b.Proposals = 1, 2, 1, []int8{-2 * w, 2 * w}
}

func creep(b *Bounds) {
	b.Clients, b.Tries, b.Fence = 1, [MaxClients]int{2}, w
	b.EmptyStart, b.Proposals, b.LongKept = 1, []int8{-w, 2 * w}, true
}

func extension(b *Bounds)     { b.TTL, b.Extensions, b.Created = 3, [MaxClients]int{1, 1}, true }
func extensionLoss(b *Bounds) { extension(b); b.EmptyStart = 1 }

// In these time is taken to be exact, which leaves room for more to happen.
func repair(b *Bounds) {
	b.Drift, b.Extensions, b.Repairs, b.Created = 0, [MaxClients]int{1}, true, true
}
func repairLoss(b *Bounds)   { repair(b); b.EmptyStart = 1 }
func repairLater(b *Bounds)  { repairLoss(b); b.Extensions[0] = 2 }
func repairGhosts(b *Bounds) { extension(b); b.Repairs, b.NoGhosts = true, true }
func repairAlone(b *Bounds) {
	extension(b)
	b.Clients, b.Tries, b.Repairs, b.LoseRepairs, b.NoGhosts = 1, [MaxClients]int{1}, true, true, true
}

// Nodes 0, 1 and 2 are the first client's list, and 0, 1 and 3 the second's.
func handOver(b *Bounds) {
	b.Nodes, b.Window, b.Drift = 4, 0, 0
	b.Lists, b.Former = [MaxClients]uint8{0b0111, 0b1011}, true
}
func handOverExtended(b *Bounds) { handOver(b); b.Extensions[0] = 1 }

// added is a list to which one node was added: the one change that is safe by
// itself.
func added(b *Bounds) { b.Nodes, b.Lists = 4, [MaxClients]uint8{0b0111, 0b1111} }

// setBack is all clocks set back by so much that the fences are out of every
// window, and time standing still.
func setBack(b *Bounds) {
	b.Clients, b.Tries, b.Fence, b.Frozen = 1, [MaxClients]int{1}, 3*w, true
	b.Proposals, b.Raise = []int8{-w, 0, w}, true
}
