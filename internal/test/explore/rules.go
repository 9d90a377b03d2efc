package explore

import (
	"slices"

	"github.com/redlatch/redlatch/node"
)

// Rule is a rule of the protocol, switched off, where that shows.
type Rule struct {
	Name string
	// Mutant names the changed lines (mutants_test.go); empty for a rule that is
	// a parameter of the instance.
	Mutant   string
	Instance Instance
	Want     Violation
}

// Rules returns the rules, each of which must be missed.
func Rules() []Rule {
	all := []Rule{
		{"a restarted node is trusted at once", "trusted at once", two(loss), TwoLeases},
		{"the same, with old data", "trusted at once", from(oldData, begins(0), done(0, 0, acquires)), TwoLeases},
		{"quarantine of a TTL", "", from(func(in *Instance) { loss(in); in.Quarantine = in.TTL }, holdsWith(w)), TokenOrder},
		{"retention of a TTL", "", from(func(in *Instance) { fewTokens(in); in.Retention = in.TTL }, holdsWith(w)), TokenOrder},
		{"quarantine and retention without the skew of clocks", "", from(func(in *Instance) { clocksBack(in); in.Quarantine, in.Retention = 3, 3 },
			holdsWith(2*w), one(ClockBack, 0), one(Empty, 0), one(ClockBack, 2)), TokenOrder},
		{"grants of two proposals counted together", "mixed grants", from(lower, one(ClockBack, 1, 2), holds(0, 1), did(Release, 0), done(0, 0, releases)), TokenOrder},
		{"no window, a clock far ahead", "no window", from(keepAll(farAhead), holdsWith(5*w), one(Empty, 0)), TokenOrder},
		{"no window, a clock far behind", "no window", from(keepAll(farBehind), holds(0, 1), one(Empty, 0)), TokenOrder},
		{"lower bound of the window only where a fence is", "loose lower", from(keepAll(cutTail), one(Save, 0), holds(0, 1), one(OldData, 0)), TokenOrder},
		{"validity from the reply", "validity from the reply", two(func(in *Instance) { in.TTL = 3 }), TwoLeases},
		{"extension by any one node", "extension by one", from(func(in *Instance) { extension(in); in.Breaks = true }, extending(0, 1), did(Begin, other), at(Break, 0, 1, extends)), TwoLeases},
		{"extension that creates, to the letter", "extension creates", two(extension), Created},
		{"extension that creates", "extension creates", from(func(in *Instance) { extensionLoss(in); in.MayCreate = true }, extending(0, 1), did(Begin, other), done(other, 2, acquires)), TwoLeases},
		{"marker compared once for an address", "", two(func(in *Instance) { loss(in); in.Tries[0], in.Proposals, in.CachedMarker = 2, []int64{0}, true }), TokenOrder},
		{"a flush that leaves the node trusted", "flush keeps the marker", two(func(in *Instance) { in.Flushes, in.Proposals = 1, []int64{0, w} }), TwoLeases},
		{"a node replaced without a membership change", "", two(func(in *Instance) { change(in); in.SameMembership = true }), TwoLeases},
		{"a membership change without a quarantine", "replaced at once", from(change, changes(0), one(Bar, 0), holds(1, 2)), TwoLeases},
		{"an extension by the former membership", "extension by the former", from(func(in *Instance) { changeExtended(in); in.Silences = 1 }, holds(1, 2), changes(1<<2), one(Bar, 0, 1), one(Mark, 0, 3),
			ticks(1), did(Extend, 0), done(0, 1, extends), done(0, 2, extends), ticks(1), did(Extend, 0)), TwoLeases},
		{"one witness is enough to mark a node", "one witness", from(emptied, two(emptied).Start, one(Empty, 1), at(MarkBy, 0, 1, 0), ticks(2)), TwoLeases},
		{"a membership change that few let finish", "few barred", from(grows, changes(0), one(Silence, 0), one(Mark, 1, 2), ticks(2), begun), TwoLeases},
		{"a membership change that another one outlives", "outlived", from(func(in *Instance) { change(in); in.Former = []int{3} },
			changes(0), one(Bar, 3), one(Mark, 0, 3), ticks(2), begun), TwoLeases},
		{"the same, found out after the bar", "outlived after the bar", from(fallSilent,
			changes(0), one(Bar, 0, 3), one(Silence, 1, 2), one(Mark, 0, 3), ticks(2), begun), TwoLeases},
		{"a silent server counts as barred", "silent is out", from(replacedHalf, changes(0), one(Bar, 0, 3), one(Silence, 1), one(Mark, 0, 3), ticks(2), begun), TwoLeases},
		{"a server that falls silent is of no membership", "silent of none", from(anotherSilent, changes(0), one(Bar, 0, 1), one(Silence, 2), one(Mark, 0, 1), ticks(2), begun), TwoLeases},
		{"a barred server is of no membership", "barred of none", from(stoppedWrong, two(stoppedWrong).Start, changes(0), one(Bar, 0, 3), one(Mark, 0, 3), ticks(2), begun), TwoLeases},
		{"what was seen of another membership is forgotten", "others unseen", from(comesBack, two(comesBack).Start, at(MarkBy, 0, 0, 0), ticks(2)), TwoLeases},
		{"a grant by a server that failed back counts", "failed back counts", from(failback, one(Promote, 0), ticks(2)), TwoLeases},
		{"a server that an empty one replaced comes back", "lineages stay", from(replaced, one(Promote, 0), ticks(2)), TwoLeases},
		{"epochs are ignored, with a single server", "epochs ignored", two(failbackAlone), TwoLeases},
		{"a quorum of N/2", "half quorum", two(func(in *Instance) { in.Servers = 4 }), TwoLeases},
		{"no drift", "no drift", two(fewTokens), TwoLeases},
		{"no fence", "no fence", from(keepAll(fewTokens), holdsWith(-w)), TokenOrder},
		{"a leap as wide as the window", "wide leap", from(creep, holdsWith(2*w), one(Empty, 0)), TokenOrder},
		{"the value kept after an undo", "", two(func(in *Instance) { in.Tries[0], in.KeepAll, in.SameValue = 2, true, true }), TokenOrder},
		{"a release that does not compare", "release does not compare", from(keepAll(func(in *Instance) { in.Tries[0], in.Proposals = 2, []int64{0, w} }),
			begins(0), ticks(1), did(Begin, other), done(other, 0, acquires)), TwoLeases},
		{"a repair that does not compare the marker", "repair unguarded", from(repairLater, repairing(), ticks(1),
			did(Begin, other), done(other, 2, acquires), did(Extend, 0), done(0, 0, extends)), TwoLeases},
		{"the same, and it is counted", "repair unguarded and counted", from(repairLoss, extending(0, 1), done(0, 2, extends), did(Begin, other), done(other, 2, acquires)), TwoLeases},
		{"undo only where a grant was seen", "undo granted only", two(twoTries), Orphan},
		{"a release that leaves the fence", "release leaves the fence", two(twoTries), Orphan},
		{"a repair of what was released", "repair after the release", two(repairAlone), Orphan},
		{"a repair below a break", "repair below a break", two(broken), Unbroken},
		{"no repair at the fence, of a key that expired", "repair below the fence", two(repairExpired), Unrepaired},

		// Rules that the former model did not have.
		{"a late grant is not undone", "late grant stays", two(twoTries), Orphan},
		{"a repair without a time limit", "repair any time", from(repairGhosts, holds(0, 1)), Orphan},
		{"the deadline moves before it is confirmed", "deadline unconfirmed", from(extension, holds(0, 1), ticks(1)), TwoLeases},
		{"an extension counted from the reply", "extension from the reply", from(extension, holds(0, 1), did(Extend, 0), done(0, 0, extends)), TwoLeases},
		{"a held lock is granted to another", "held is granted", two(func(in *Instance) { in.Proposals = []int64{0, w} }), TwoLeases},
		{"a grant from before the partial grants counts", "old grant counts", two(waitsLate), TwoLeases},
		{"a late request joins a queue", "late joins", two(places), OrphanedPlace},
		{"a release that does not forbid to join a queue", "release does not end", two(places), OrphanedPlace},
		{"a place in a queue is not undone", "place not undone", two(places), OrphanedPlace},
		{"a release before the answer, out of order", "release out of order", two(func(in *Instance) { ahead(in); in.InOrder = false }), Orphan},
		{"what was sent again is not undone", "sent again stays", two(ahead), Orphan},
		{"what failed is not undone after the release", "failed stays", two(ahead), Orphan},
		{"a reserve that leaves the fence", "reserve leaves the fence", from(passesLate, passed(), ticks(4)), TokenOrder},
		{"a pass with a token that no quorum has reserved", "reserve by one", from(func(in *Instance) { passesLate(in); in.Breaks = true }, holdsFor(0, 1),
			done(0, 0, extends), at(Break, 0, 1, extends), at(Break, 0, 2, extends), did(PassOn, 0), ticks(4)), TokenOrder},
		{"a pass that begins the time to live anew", "pass moves the deadline", from(func(in *Instance) { passesLate(in); in.TTL, in.Proposals = 6, []int64{0} },
			holdsFor(0, 1), done(0, 0, extends), ticks(1), done(0, 1, extends), did(PassOn, 0), ticks(4)), TwoLeases},
		{"a pass to one that came after the reserve", "pass to a later one", from(passesBeside, holdsFor(0, 1),
			done(0, 0, extends), done(0, 1, extends), did(Leave, 1), did(Begin, other)), Overtaken},
		{"a pass before a waiter elsewhere", "pass before others", from(passesBeside, begins(0), done(0, 0, acquires), at(Lose, 0, 2, acquires), did(Begin, other),
			done(other, 0, acquires), done(other, 2, acquires), did(Come, 1), done(0, 1, acquires)), Overtaken},
		{"callers wait on for a lease that has ended", "ended lets nobody in", two(passes), Forsaken},
		{"callers wait on for one that left", "left lets nobody in", from(passes, begins(0), did(Come, 1)), Forsaken},
		{"an extension that ends after the lease is acted upon", "late extension", two(extension), Revived},
	}
	return append(all, sharingRules()...)
}

// keepAll makes a change keep all messages.
func keepAll(change func(*Instance)) func(*Instance) {
	return func(in *Instance) { change(in); in.KeepAll = true }
}

// from starts an instance after some steps.
func from(change func(*Instance), steps ...[]Step) Instance {
	in := two(change)
	in.Start = slices.Concat(steps...)
	return in
}

// other is the first claim of the second client.
const other = MaxTries

func one(k Kind, servers ...int) (steps []Step) {
	for _, server := range servers {
		steps = append(steps, Step{Kind: k, Server: server})
	}
	return steps
}

// begun is a claim of each client that has asked.
var begun = slices.Concat(did(Begin, 0), did(Begin, other))

// changes is how the operator reads all markers, but for those of silent servers.
func changes(silent int64) []Step { return []Step{{Kind: Change, Token: silent}} }

func did(k Kind, claim int) []Step { return []Step{{Kind: k, Claim: claim}} }

func at(k Kind, claim, server int, op node.Op) []Step {
	return []Step{{Kind: k, Claim: claim, Server: server, Op: op}}
}

// done is a request that a node executes, and whose answer arrives.
func done(claim, server int, op node.Op) []Step { return at(Deliver, claim, server, op) }

const acquires, releases, extends, repairs = node.OpAcquire, node.OpRelease, node.OpExtend, node.OpRepair

func begins(token int64) []Step { return []Step{{Kind: Begin, Token: token}} }

// holds is how the first client comes to hold the lock on two nodes, with the
// third request in flight.
func holds(a, b int) []Step {
	return slices.Concat(begins(0), done(0, a, acquires), done(0, b, acquires))
}

func holdsWith(token int64) []Step {
	steps := holds(0, 1)
	steps[0].Token = token
	return steps
}

// holdsFor is the same, with a caller behind it.
func holdsFor(a, b int) []Step {
	return slices.Concat(begins(0), did(Come, 1), done(0, a, acquires), done(0, b, acquires))
}

// passed is how it comes to hold the lock, and passes it on.
func passed() []Step {
	return slices.Concat(holdsFor(0, 1), done(0, 0, extends), done(0, 1, extends), did(PassOn, 0))
}

// ticks has time pass.
func ticks(n int) (steps []Step) {
	for range n {
		steps = append(steps, did(TimePasses, 0)...)
	}
	return steps
}

// extending is how it comes to hold the lock, lets a tick pass, and has one node
// execute its extension.
func extending(a, b int) []Step {
	return slices.Concat(holds(a, b), ticks(1), did(Extend, 0), done(0, a, extends))
}

// repairing is how it comes to hold the lock and extends it at once, and the
// third node is being sent a repair.
func repairing() []Step {
	return slices.Concat(holds(0, 1), did(Extend, 0),
		done(0, 2, extends), done(0, 0, extends), done(0, 1, extends))
}
