package explore

import "slices"

// This file is the instances: each has just what a rule, or a few of them, is
// about, so that it can be searched to its end.

// two is two clients on three nodes, with one claim each. A lease of it is valid
// for one tick.
func two(change func(*Instance)) Instance {
	in := Instance{Clients: 2, Servers: 3, TTL: 2, Window: 1, Tries: pair{1, 1}, Proposals: []int64{0}}
	change(&in)
	return in
}

const w = 2 * ms // the window, in tokens

// whole has the tests search an instance to its end, or to its own bound.
const whole = -1

// Instances returns all of them.
func Instances() []Instance {
	named := func(name string, tests int, change func(*Instance)) Instance {
		in := two(change)
		in.Name, in.Tests = name, tests
		return in
	}
	return append([]Instance{
		named("one claim each", whole, func(in *Instance) { in.NoGhosts = true }),
		named("client clocks off by up to the window", 0, fewTokens),
		named("client clocks off by up to the window and beyond", 0, tokens),
		named("answers are late, too", 8, func(in *Instance) { in.LateReply = true }),
		named("answers are late, client clocks are off", 0, lateAnswers),
		named("connections break", 8, func(in *Instance) { in.Breaks, in.NoGhosts = true, true }),
		named("a request is executed twice", whole, func(in *Instance) { in.Duplicates = 1 }),
		named("a request is executed twice, client clocks are off", 0, func(in *Instance) { fewTokens(in); in.Duplicates = 1 }),
		named("two claims of one client", 0, twoTries),
		named("two claims of one client, longer leases", 0, func(in *Instance) { twoTries(in); in.TTL = 3 }),
		named("two claims of both clients", 0, func(in *Instance) { in.Tries = pair{2, 2} }),
		named("a second proposal in a claim", 0, again),
		named("a second, lower proposal, and node clocks differ", 0, lower),
		named("a node restarts without its data", 0, loss),
		named("the same, and client clocks are off", 0, func(in *Instance) { fewTokens(in); in.EmptyStart = 1 }),
		named("two restarts", 0, func(in *Instance) { loss(in); in.EmptyStart = 2 }),
		named("a node restarts with old data", 0, oldData),
		named("the same, and a client clock is far behind", 0, cutTail),
		named("a node is flushed", 0, func(in *Instance) { fewTokens(in); in.Flushes = 1 }),
		named("a restart, and a client clock is far ahead", 0, farAhead),
		named("a restart, and a client clock is far behind", 0, farBehind),
		named("a restart, and node clocks are set back", 0, clocksBack),
		named("a restart, and tokens creep ahead of the window", 0, creep),
		named("a restart, to depth 7", whole, func(in *Instance) { in.EmptyStart, in.Depth = 1, 7 }),
		named("an extension", 7, func(in *Instance) { extension(in); in.Extensions[1] = 0 }),
		named("an extension of each", 0, extension),
		named("two extensions of each", 0, func(in *Instance) { extension(in); in.Extensions = pair{2, 2} }),
		named("an extension, and a restart", 0, extensionLoss),
		named("repair", 0, repair),
		named("repair, and a restart", 0, repairLoss),
		named("repair after two extensions, and a restart", 0, repairLater),
		named("repair, and no orphaned keys", 0, repairGhosts),
		named("repair, and no orphaned keys, connections break", 0, func(in *Instance) { repairGhosts(in); in.Breaks = true }),
		named("repair of one claim, connections break", whole, repairAlone),
		named("repair of one claim, a request is executed twice", whole, func(in *Instance) { repairAlone(in); in.Duplicates, in.Breaks = 1, false }),
		named("repair of a key that expired", whole, repairExpired),
		named("a lock is broken while it is extended and repaired", 10, broken),
		named("the same, with another client", 0, func(in *Instance) { broken(in); in.Clients, in.Tries = 2, pair{1, 1} }),
		named("a membership change", 0, change),
		named("the same, under a lease that is extended", 0, changeExtended),
		named("the same, when one server is not barred yet", 6, func(in *Instance) {
			change(in)
			in.Silences, in.Start = 1, slices.Concat(holds(1, 2), changes(0), one(Bar, 0, 1))
		}),
		named("a membership change that is stopped, and run again", 7, stopped),
		named("a membership change that is stopped, and taken back", 7, func(in *Instance) { stopped(in); in.Back = true }),
		named("a server is added to one without a guard, and one is silent", 5, grows),
		named("a membership change lists a new server alone", 6, func(in *Instance) { change(in); in.Former, in.Start = []int{3}, changes(0) }),
		named("the same, beside members of which one is silent", 6, replacedHalf),
		named("the same, after another that was stopped", 7, stoppedWrong),
		named("the same, beside members that fall silent", 5, func(in *Instance) { fallSilent(in); in.Start = changes(0) }),
		named("the same, beside another membership that falls silent", 6, func(in *Instance) { anotherSilent(in); in.Start = changes(0) }),
		named("a former membership of a server that has lost its data", whole, comesBack),
		named("a membership change with a node away, and another one emptied", 6, emptied),
		named("a node is added to an odd membership", 7, added),
		named("a failover without the last writes, and a failback", 7, failback),
		named("the same, with an empty server in between", 7, replaced),
		named("a failover and a failback of a single server", whole, failbackAlone),
		named("in order", whole, inOrder),
		named("in order, a token is ahead on one node", whole, ahead),
		named("in order, client clocks are off", 0, func(in *Instance) { inOrder(in); tokens(in); in.NoGhosts = false }),
		named("in order, connections break", 0, func(in *Instance) { inOrder(in); in.Breaks = true }),
		named("in order, two claims of one client", 0, func(in *Instance) { inOrder(in); twoTries(in) }),
		named("in order, with repairs", 0, func(in *Instance) { repairGhosts(in); inOrder(in) }),
		named("in order, a claim that waits leaves no place", 7, func(in *Instance) { inOrder(in); places(in) }),
		named("four nodes", whole, func(in *Instance) { in.Servers = 4 }),
		named("a claim waits, is notified, and yields", 0, waits),
		named("a lease is passed on", 5, passes),
		named("a lease is passed on, and connections break", 0, func(in *Instance) { passes(in); in.Breaks = true }),
		named("a lease was passed on, and connections break", 0, func(in *Instance) { passes(in); in.Breaks, in.Start = true, passed() }),
		named("a lease is passed on, and a request is executed twice", 0, func(in *Instance) { passes(in); in.Duplicates = 1 }),
		named("a lease was passed on, and a request is executed twice", 0, func(in *Instance) { passes(in); in.Duplicates, in.Start = 1, passed() }),
		named("a lease is passed on, and a client elsewhere is slow", 5, passesLate),
		named("a lease is passed on, and a claim elsewhere waits", 5, passesBeside),
		named("a claim that waits leaves no place", 7, places),
		named("the same, and connections break", 0, func(in *Instance) { places(in); in.Breaks = true }),
		named("the same, and answers are late", 0, func(in *Instance) { places(in); in.LateReply = true }),
		named("the same, and client clocks are off", 0, func(in *Instance) { places(in); fewTokens(in) }),
		named("a claim waits, and an answer to its round is late", 5, waitsLate),
		named("the same, a reader and a writer", 0, func(in *Instance) { places(in); readerAndWriter(in) }),
		named("the same, two slots", 0, func(in *Instance) { places(in); twoSlots(in) }),
	}, sharing(named)...)
}

// inOrder is nodes that execute in order what a client sends.
func inOrder(in *Instance) { in.InOrder, in.NoGhosts = true, true }

// ahead is a lease with a token that is ahead of the clock of the third node, which
// lets its release raise no fence. A tick later it grants that token.
func ahead(in *Instance) {
	inOrder(in)
	in.Clients, in.Tries, in.TTL, in.Skew, in.ClocksBack, in.Proposals = 1, pair{1}, 4, 1, 1, []int64{w}
	in.Start = slices.Concat(one(ClockBack, 2), holdsWith(w))
}

// waits is a claim that waits while the other one holds the lock.
func waits(in *Instance) { in.TTL, in.Waits, in.Tries = 2, true, pair{2, 2}; in.Depth = 12 }

// passes is a lease that is passed on to a claim in its own process.
func passes(in *Instance) {
	in.TTL, in.Passes, in.Tries, in.FencesKept = 4, true, pair{2, 1}, true
	in.Raise, in.Start = true, holdsFor(0, 1)
}

// passesLate is the same, with another client that is slow: its token was chosen
// when the lease was passed on, four ticks ago.
func passesLate(in *Instance) {
	passes(in)
	in.Window, in.Raise, in.Proposals, in.Start = 6, false, []int64{0, 2 - 8*ms}, append(passed(), ticks(4)...)
}

// passesBeside is the same, while a claim of another process waits.
func passesBeside(in *Instance) { passes(in); in.Waits = true }

// waitsLate is a claim that waits. One node has granted it the lock, and the
// answer is late; another one forgets that it waits. When the holder frees the lock,
// it asks the third one, and the late answer comes.
func waitsLate(in *Instance) {
	in.Waits, in.LateReply, in.TTL, in.Flushes, in.Tries = true, true, 4, 1, pair{1, 2}
	in.Start = slices.Concat(did(Begin, other), done(other, 1, acquires), done(other, 2, acquires),
		did(Begin, 0), at(Delay, 0, 0, acquires), done(0, 1, acquires), done(0, 2, acquires), one(Flush, 2),
		ticks(2), did(Release, other), done(other, 1, releases), done(other, 2, releases),
		at(Notify, 0, 1, 0), at(Arrive, 0, 0, acquires))
}

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
	in.Clients, in.Tries, in.Fence = 1, pair{2}, w
	in.EmptyStart, in.Proposals, in.FencesKept = 1, []int64{-w, 2 * w}, true
}

func extension(in *Instance)     { in.TTL, in.Extensions = 3, pair{1, 1} }
func extensionLoss(in *Instance) { extension(in); in.EmptyStart = 1 }

func repair(in *Instance)       { in.TTL, in.Extensions, in.Repairs = 3, pair{1}, true }
func repairLoss(in *Instance)   { repair(in); in.EmptyStart = 1 }
func repairLater(in *Instance)  { repairLoss(in); in.Extensions[0] = 2 }
func repairGhosts(in *Instance) { extension(in); in.Repairs, in.NoGhosts, in.Limit = true, true, 1 }
func repairAlone(in *Instance) {
	extension(in)
	in.Clients, in.Tries, in.Repairs, in.NoGhosts, in.Breaks, in.Limit = 1, pair{1}, true, true, true, 1
}

// repairExpired begins when the third node has missed an extension, and its key has expired.
func repairExpired(in *Instance) {
	repair(in)
	in.Extensions[0], in.Depth = 2, 7
	in.Start = slices.Concat(holds(0, 1), done(0, 2, acquires), ticks(1), did(Extend, 0),
		done(0, 0, extends), done(0, 1, extends), ticks(1))
}

// broken is a lease on three nodes that an operator breaks, one after the other.
func broken(in *Instance) {
	repair(in)
	in.Clients, in.Tries, in.Extensions[0], in.BreakUps = 1, pair{1}, 2, true
	in.Start = slices.Concat(holds(0, 1), done(0, 2, acquires))
}

// Servers 0, 1 and 2 are the first client's membership, 0, 1 and 3 the second's.
func change(in *Instance) {
	in.Servers, in.Window, in.Runs, in.Lists = 4, 0, 1, [MaxClients][]int{{0, 1, 2}, {0, 1, 3}}
}
func changeExtended(in *Instance) { change(in); in.TTL, in.Extensions[0] = 3, 2 }

// stopped is one that is stopped while its first bar, and others, are in flight.
func stopped(in *Instance) {
	change(in)
	in.Runs, in.Start = 2, slices.Concat(holds(1, 2), changes(0), one(Bar, 0), one(Stop, 0))
}

// grows is a change from one server with the guard off to three.
func grows(in *Instance) {
	in.Servers, in.Window, in.Runs, in.Silences, in.Unguarded, in.Later = 3, 0, 1, 1, true, true
	in.Lists = [MaxClients][]int{{0}, {0, 1, 2}}
}

// replacedHalf is a change to servers 0 and 3, that leaves out one, while another one
// may be silent.
func replacedHalf(in *Instance) {
	change(in)
	in.Lists[1], in.Former, in.Silences = []int{0, 3}, []int{0, 1, 3}, 1
}

// stoppedWrong is the same without the other, after a run that was stopped when one
// server was barred.
func stoppedWrong(in *Instance) {
	replacedHalf(in)
	in.Former, in.Silences, in.Runs, in.Start = []int{0, 3}, 0, 2, slices.Concat(changes(0), one(Bar, 0), one(Stop, 0))
}

// fallSilent is a change that lists the new server as a former one, too.
func fallSilent(in *Instance) { change(in); in.Former, in.Silences = []int{0, 1, 2, 3}, 2 }

// anotherSilent is a change from two servers without a marker, and from one that is a
// membership of its own.
func anotherSilent(in *Instance) {
	grows(in)
	in.Unguarded, in.Lists, in.Former = false, [MaxClients][]int{{2}, {0, 1}}, []int{0, 1, 2}
}

// comesBack is a server that was alone, and is one of three now. A client that has its
// former list, and has seen that, finds it without its data.
func comesBack(in *Instance) {
	grows(in)
	in.Unguarded, in.Later, in.Silences, in.EmptyStart, in.Tries[0] = false, false, 0, 1, 2
	in.Start = slices.Concat(changes(0), one(Bar, 0), one(Mark, 0, 1, 2), ticks(2),
		did(Begin, 0), done(0, 0, acquires), one(Empty, 0))
}

// emptied is a membership change to 0, 1 and 3 while 2 is away, which keeps the
// former marker. Then a server loses its data.
func emptied(in *Instance) {
	change(in)
	in.EmptyStart, in.Silences = 1, 1
	in.Start = slices.Concat(changes(1<<2), one(Bar, 0, 1), one(Mark, 0, 1, 3), ticks(2))
}

// failback is a server that is replaced by a replica that lacks its last writes,
// and comes back as it was.
func failback(in *Instance) { in.Window, in.Failback, in.OldStart = 0, true, 1 }

func replaced(in *Instance) { failback(in); in.Replaced = true }

func failbackAlone(in *Instance) { failback(in); in.Servers = 1 }

// added is a membership to which one node was added: the one change that is safe
// by itself.
func added(in *Instance) {
	in.Servers, in.Lists, in.SameMembership = 4, [MaxClients][]int{{0, 1, 2}, {0, 1, 2, 3}}, true
}

// setBack is all clocks set back by so much that the fences are out of every
// window, and no time passes.
func setBack(in *Instance) {
	in.Clients, in.Tries, in.Fence, in.Frozen = 1, pair{1}, 3*w, true
	in.Proposals, in.Raise = []int64{-w, 0, w}, true
}
