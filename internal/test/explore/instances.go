package explore

import (
	"slices"

	"github.com/redlatch/redlatch/node"
)

// This file is the instances: each has just what a rule, or a few of them, is
// about, so that it can be searched to its end.

// two is two clients on three nodes, with one claim each. A lease of it is valid
// for one tick.
func two(change func(*Instance)) Instance {
	in := Instance{Clients: 2, Servers: 3, TTL: 2, Window: 1, Tries: [MaxClients]int{1, 1}, Proposals: []int64{0}}
	change(&in)
	return in
}

const w = 2 * ms // the window, in tokens

// Instances returns all of them.
func Instances() []Instance {
	named := func(name string, small bool, change func(*Instance)) Instance {
		in := two(change)
		in.Name, in.Small = name, small
		return in
	}
	return append([]Instance{
		named("one claim each", true, func(in *Instance) { in.NoGhosts = true }),
		named("client clocks off by up to the window", false, fewTokens),
		named("client clocks off by up to the window and beyond", false, tokens),
		named("answers are late, too, to depth 8", true, func(in *Instance) { in.LateReply, in.Depth = true, 8 }),
		named("answers are late, too", false, func(in *Instance) { in.LateReply = true }),
		named("answers are late, client clocks are off", false, lateAnswers),
		named("connections break, to depth 8", true, func(in *Instance) { in.Breaks, in.NoGhosts, in.Depth = true, true, 8 }),
		named("connections break", false, func(in *Instance) { in.Breaks, in.NoGhosts = true, true }),
		named("a request is executed twice", true, func(in *Instance) { in.Duplicates = 1 }),
		named("a request is executed twice, client clocks are off", false, func(in *Instance) { fewTokens(in); in.Duplicates = 1 }),
		named("two claims of one client", false, twoTries),
		named("two claims of one client, longer leases", false, func(in *Instance) { twoTries(in); in.TTL = 3 }),
		named("two claims of both clients", false, func(in *Instance) { in.Tries = [MaxClients]int{2, 2} }),
		named("a second proposal in a claim", false, again),
		named("a second, lower proposal, and node clocks differ", false, lower),
		named("a node restarts without its data", false, loss),
		named("the same, and client clocks are off", false, func(in *Instance) { fewTokens(in); in.EmptyStart = 1 }),
		named("two restarts", false, func(in *Instance) { loss(in); in.EmptyStart = 2 }),
		named("a node restarts with old data", false, oldData),
		named("the same, and a client clock is far behind", false, cutTail),
		named("a node is flushed", false, func(in *Instance) { fewTokens(in); in.Flushes = 1 }),
		named("a restart, and a client clock is far ahead", false, farAhead),
		named("a restart, and a client clock is far behind", false, farBehind),
		named("a restart, and node clocks are set back", false, clocksBack),
		named("a restart, and tokens creep ahead of the window", false, creep),
		named("a restart, to depth 7", true, func(in *Instance) { in.EmptyStart, in.Depth = 1, 7 }),
		named("an extension, to depth 7", true, func(in *Instance) { extension(in); in.Extensions[1], in.Depth = 0, 7 }),
		named("an extension", false, func(in *Instance) { extension(in); in.Extensions[1] = 0 }),
		named("an extension of each", false, extension),
		named("two extensions of each", false, func(in *Instance) { extension(in); in.Extensions = [MaxClients]int{2, 2} }),
		named("an extension, and a restart", false, extensionLoss),
		named("repair", false, repair),
		named("repair, and a restart", false, repairLoss),
		named("repair after two extensions, and a restart", false, repairLater),
		named("repair, and no orphaned keys", false, repairGhosts),
		named("repair, and no orphaned keys, connections break", false, func(in *Instance) { repairGhosts(in); in.Breaks = true }),
		named("repair of one claim, connections break", true, repairAlone),
		named("repair of one claim, a request is executed twice", true, func(in *Instance) { repairAlone(in); in.Duplicates, in.Breaks = 1, false }),
		named("repair of a key that expired", true, repairExpired),
		named("a membership change", false, change),
		named("the same, under a lease that is extended", false, changeExtended),
		named("a membership change with a node away, and another one emptied", false, emptied),
		named("the same, to depth 6", true, func(in *Instance) { emptied(in); in.Depth = 6 }),
		named("a failover without the last writes, and a failback, to depth 7", true, func(in *Instance) { failback(in); in.Depth = 7 }),
		named("a failover without the last writes, and a failback", false, failback),
		named("a failover and a failback of a single server", true, failbackAlone),
		named("in order", true, inOrder),
		named("in order, a token is ahead on one node", true, ahead),
		named("in order, client clocks are off", false, func(in *Instance) { inOrder(in); tokens(in); in.NoGhosts = false }),
		named("in order, connections break", false, func(in *Instance) { inOrder(in); in.Breaks = true }),
		named("in order, two claims of one client", false, func(in *Instance) { inOrder(in); twoTries(in) }),
		named("in order, with repairs", false, func(in *Instance) { repairGhosts(in); inOrder(in) }),
		named("in order, a claim that waits leaves no place, to depth 7", true, func(in *Instance) { inOrder(in); places(in); in.Depth = 7 }),
		named("in order, a claim that waits leaves no place", false, func(in *Instance) { inOrder(in); places(in) }),
		named("four nodes", true, func(in *Instance) { in.Servers = 4 }),
		named("a claim waits, is notified, and yields", false, waits),
		named("a lease is passed on, to depth 6", true, func(in *Instance) { passes(in); in.Start, in.Depth = holds(0, 1), 6 }),
		named("a lease is passed on, and a client elsewhere is slow, to depth 5", true, func(in *Instance) {
			passesLate(in)
			in.Start, in.Depth = append(passed(), ticks(4)...), 5
		}),
		named("a lease is passed on", false, passes),
		named("the same, and connections break", false, func(in *Instance) { passes(in); in.Breaks = true }),
		named("the same, and a request is executed twice", false, func(in *Instance) { passes(in); in.Duplicates = 1 }),
		named("a lease is passed on, and a claim elsewhere waits, to depth 6", true, func(in *Instance) { passesBeside(in); in.Start, in.Depth = holds(0, 1), 6 }),
		named("a lease is passed on, and a claim elsewhere waits", false, passesBeside),
		named("a claim that waits leaves no place, to depth 7", true, func(in *Instance) { places(in); in.Depth = 7 }),
		named("a claim that waits leaves no place", false, places),
		named("the same, and connections break", false, func(in *Instance) { places(in); in.Breaks = true }),
		named("the same, and answers are late", false, func(in *Instance) { places(in); in.LateReply = true }),
		named("the same, and client clocks are off", false, func(in *Instance) { places(in); fewTokens(in) }),
		named("the same, a reader and a writer", false, func(in *Instance) { places(in); readerAndWriter(in) }),
		named("the same, two slots", false, func(in *Instance) { places(in); twoSlots(in) }),
	}, sharing(named)...)
}

// inOrder is nodes that execute in order what a client sends.
func inOrder(in *Instance) { in.InOrder, in.NoGhosts = true, true }

// ahead is a lease with a token that is ahead of the clock of the third node, which
// lets its release raise no fence. A tick later it grants that token.
func ahead(in *Instance) {
	inOrder(in)
	in.Clients, in.Tries, in.TTL, in.Skew, in.ClocksBack, in.Proposals = 1, [MaxClients]int{1}, 4, 1, 1, []int64{w}
	in.Start = slices.Concat(one(ClockBack, 2), holdsWith(w))
}

// waits is a claim that waits while the other one holds the lock.
func waits(in *Instance) { in.TTL, in.Waits, in.Tries = 2, true, [MaxClients]int{2, 2}; in.Depth = 12 }

// passes is a lease that is passed on to a claim in its own process.
func passes(in *Instance) {
	in.TTL, in.Passes, in.Tries, in.FencesKept = 4, true, [MaxClients]int{2, 1}, true
	in.Raise, in.Depth = true, 14
}

// passesLate is the same, with another client that is slow: its token was chosen
// when the lease was passed on, four ticks ago.
func passesLate(in *Instance) {
	passes(in)
	in.Window, in.Raise, in.Proposals, in.Depth = 6, false, []int64{0, 2 - 8*ms}, 7
}

// passesBeside is the same, while a claim of another process waits.
func passesBeside(in *Instance) { passes(in); in.Waits, in.Depth = true, 13 }

// places is a claim that waits and gives up, while another holds the lock.
func places(in *Instance) { in.Waits, in.NoGhosts = true, true }

func tokens(in *Instance)      { in.Proposals, in.Raise = []int64{-w - 1, -w, 0, w, w + 1}, true }
func fewTokens(in *Instance)   { in.Proposals, in.Raise = []int64{-w, 0, w}, true }
func lateAnswers(in *Instance) { fewTokens(in); in.LateReply = true }
func twoTries(in *Instance)    { in.Tries[0], in.NoGhosts = 2, true }
func again(in *Instance)       { in.Again, in.Proposals = 1, []int64{0, w} }
func lower(in *Instance) {
	again(in)
	in.TTL, in.Patience, in.Skew, in.ClocksBack, in.Proposals = 3, 1, 1, 2, []int64{-w, 0, 2 * w}
}
func loss(in *Instance)    { in.EmptyStart, in.Proposals = 1, []int64{-w, w} }
func oldData(in *Instance) { in.OldStart, in.Proposals = 1, []int64{0, w} }
func cutTail(in *Instance) { in.OldStart, in.Proposals, in.FencesKept = 1, []int64{-5 * w, 0}, true }
func farBehind(in *Instance) {
	in.EmptyStart, in.Proposals, in.FencesKept = 1, []int64{-5 * w, 0}, true
}
func farAhead(in *Instance) { in.EmptyStart, in.Proposals, in.FencesKept = 1, []int64{0, 5 * w}, true }

func clocksBack(in *Instance) {
	in.Skew, in.ClocksBack, in.EmptyStart, in.Proposals = 1, 2, 1, []int64{-2 * w, 2 * w}
}

func creep(in *Instance) {
	in.Clients, in.Tries, in.Fence = 1, [MaxClients]int{2}, w
	in.EmptyStart, in.Proposals, in.FencesKept = 1, []int64{-w, 2 * w}, true
}

func extension(in *Instance)     { in.TTL, in.Extensions = 3, [MaxClients]int{1, 1} }
func extensionLoss(in *Instance) { extension(in); in.EmptyStart = 1 }

func repair(in *Instance) {
	in.TTL, in.Extensions, in.Repairs = 3, [MaxClients]int{1}, true
}
func repairLoss(in *Instance)   { repair(in); in.EmptyStart = 1 }
func repairLater(in *Instance)  { repairLoss(in); in.Extensions[0] = 2 }
func repairGhosts(in *Instance) { extension(in); in.Repairs, in.NoGhosts, in.Limit = true, true, 1 }
func repairAlone(in *Instance) {
	extension(in)
	in.Clients, in.Tries, in.Repairs, in.NoGhosts, in.Breaks, in.Limit = 1, [MaxClients]int{1}, true, true, true, 1
}

// repairExpired has the third node miss an extension, and its key expire.
func repairExpired(in *Instance) {
	repair(in)
	in.Extensions[0], in.Depth = 2, 7
	in.Start = slices.Concat(holds(0, 1), at(Deliver, 0, 2, node.OpAcquire), did(TimePasses, 0), did(Extend, 0),
		at(Deliver, 0, 0, node.OpExtend), at(Deliver, 0, 1, node.OpExtend), did(TimePasses, 0))
}

// Servers 0, 1 and 2 are the first client's membership, 0, 1 and 3 the second's.
func change(in *Instance) {
	in.Servers, in.Window, in.Lists = 4, 0, [MaxClients][]int{{0, 1, 2}, {0, 1, 3}}
}
func changeExtended(in *Instance) { change(in); in.TTL, in.Extensions[0] = 3, 2 }

// emptied is a membership change to 0, 1 and 3 while 2 is away, which keeps the
// former marker. Then a server loses its data.
func emptied(in *Instance) {
	change(in)
	in.EmptyStart = 1
	in.Start = slices.Concat(one(Bar, 0), one(Bar, 1), one(Mark, 0), one(Mark, 1), one(Mark, 3), did(TimePasses, 0), did(TimePasses, 0))
}

// failback is a server that is replaced by a replica that lacks its last writes,
// and comes back as it was.
func failback(in *Instance) { in.Window, in.Failback, in.OldStart = 0, true, 1 }

func failbackAlone(in *Instance) { failback(in); in.Servers = 1 }

// added is a membership to which one node was added: the one change that is safe
// by itself.
func added(in *Instance) {
	in.Servers, in.Lists, in.SameMembership = 4, [MaxClients][]int{{0, 1, 2}, {0, 1, 2, 3}}, true
}

// setBack is all clocks set back by so much that the fences are out of every
// window, and no time passes.
func setBack(in *Instance) {
	in.Clients, in.Tries, in.Fence, in.Frozen = 1, [MaxClients]int{1}, 3*w, true
	in.Proposals, in.Raise = []int64{-w, 0, w}, true
}
