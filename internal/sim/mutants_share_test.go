package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The mutants of readers, slots, Once, Keep, Watch, Wanted and Downgrade. There are
// so many that make test checks only that they fit the code; make mutants runs
// them.
func init() {
	if os.Getenv("REDLATCH_MUTANTS") == "all" {
		mutants = append(mutants, shareMutants...)
		others = append(others, shareOthers...)
	}
}

// TestMutantsOfTheFamilyFitTheCode checks that each changes one place.
func TestMutantsOfTheFamilyFitTheCode(t *testing.T) {
	check := func(name, file, old string) {
		source, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), old); n != 1 {
			t.Errorf("%s: %s has %d places that read\n%s\nwant 1: has the code changed?", name, file, n, old)
		}
	}
	for _, m := range shareMutants {
		check(m.name, m.file, m.old)
	}
	for _, m := range shareOthers {
		check(m.name, m.file, m.old)
	}
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
	{"a run that failed counts", "once.go",
		"		if err := fn(ctx, l); err != nil {\n			return err\n", "		if err := fn(ctx, l); err != nil && c.remember(ctx, name, key, occurrence) != nil {\n			return err\n", "TestOccurrenceThatFailedIsNotDone ."},
	{"a run that lost its lock counts", "once.go",
		"		if l.Err() != nil {\n", "		if false {\n", "TestOccurrenceThatFailedIsNotDone ."},
	{"nobody looks for a mark under the lock", "once.go",
		"		if done.marks > 0 || err != nil {\n", "		if err != nil && done.marks > 9 {\n", "TestCallersOfAnOccurrenceThatComeTogetherRunItOnce ."},
	{"a mark on one node is not written back", "once.go",
		"r.marks > 0 && r.marks < quorum", "r.marks > quorum", "TestOneMarkMeansDoneAndIsWrittenBack ."},
	{"a success that is not noted is no error", "once.go",
		"			return fmt.Errorf(\"redlatch: %q of %q ran, and may run again: %w\", occurrence, name, err)\n", "			return nil\n", "TestSuccessThatIsNotNotedIsAnError ."},
	{"since when is that of any node", "once.go",
		"		r.since = since[quorum-1]\n", "		r.since = since[0]\n", "TestDoneSaysSinceWhenAQuorumRemembers ."},
	{"a release frees what is to be kept", "internal/protocol/end.go",
		"	req.Keep = c.keptFor(v)\n", "", "TestKeepKeepsTheLockTakenAfterTheRelease ."},
	{"an extension shortens what is kept", "internal/protocol/held.go",
		"{ return max(c.cfg.TTL, c.keptFor(v)) }", "{ return c.cfg.TTL }", "TestKeepKeepsTheLockTakenAfterTheRelease ."},
	{"an attempt that failed is kept", "internal/protocol/end.go",
		"	req.Keep = c.keptFor(v)\n", "	req.Keep = max(c.keptFor(v), c.cfg.Keep)\n", "TestAttemptThatFailsKeepsNothing ."},
	{"a watcher believes one node", "watch.go",
		"holders[0].Nodes >= quorum", "holders[0].Nodes >= 1", "TestWatchBelievesAQuorum ."},
	{"a watcher does not see that the lock is free", "watch.go",
		"	if free >= quorum {\n		return s, true, nil", "	if free >= quorum {\n		return s, false, nil", "TestWatchReportsWhoLeadsAndEveryChange ."},
	{"a lease is wanted by nobody", "wanted.go",
		"look.Waiting > 0", "look.Waiting > 1000", "TestWantedIsClosedWhenSomebodyWaits ."},
	{"a lease is wanted at once", "wanted.go",
		"look.Waiting > 0", "look.Waiting >= 0", "TestWantedIsClosedWhenSomebodyWaits ."},
	{"a downgrade during an extension is forgotten", "internal/protocol/held.go",
		"		if c.round.share != c.share {\n", "		if false {\n", "TestDowngradeDuringAnExtensionIsDone ."},
	{"a share is not repaired beside others", "internal/nodestate/ops.go",
		"		return e.missing(req)\n", "		return e.taken()\n", "TestShareIsRepairedWhereOthersHoldTheName ."},
	{"claims that cross wait the whole delay", "internal/protocol/yield.go",
		"c.uncross(v)", "0", "TestClaimsThatCrossOverSlotsTryAgainSoon ."},
}
