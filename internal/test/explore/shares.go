package explore

import (
	"slices"

	"github.com/redlatch/redlatch/node"
)

// This file is the instances with readers and slots, and their rules.

var reader = node.Share{Mode: node.Shared}

func slot(of uint8) node.Share { return node.Share{Mode: node.Slotted, Slots: of} }

// sharing returns the instances in which the lock may have several holders.
func sharing(named func(string, int, func(*Instance)) Instance) []Instance {
	return []Instance{
		named("a reader and a writer", whole, readerAndWriter),
		named("a reader and a writer, a request is executed twice", 7, func(in *Instance) { readerAndWriter(in); in.Duplicates = 1 }),
		named("a reader and a writer, client clocks are off", 0, func(in *Instance) { readerAndWriter(in); fewTokens(in) }),
		named("two readers", 0, func(in *Instance) { in.Shares, in.NoGhosts = [MaxClients]node.Share{reader, reader}, true }),
		named("two claims of a reader, and a writer", 0, func(in *Instance) { readerAndWriter(in); twoTries(in) }),
		named("two clients, one slot", whole, func(in *Instance) { in.Shares, in.NoGhosts = [MaxClients]node.Share{slot(1), slot(1)}, true }),
		named("two clients, two slots, and a second proposal", 9, twoSlots),
		named("two slots of one server, and a copy of a request", whole, oneServer),
		named("a slot and a writer", whole, func(in *Instance) { in.Shares[0] = slot(2) }),
		named("a writer that becomes a reader, beside a reader", 8, downgrade),
		named("a writer that becomes a reader, and another writer", 0, func(in *Instance) { downgrade(in); in.Shares[1] = node.Share{} }),
		named("repair of a reader alone, connections break", whole, func(in *Instance) { repairAlone(in); in.Shares[0] = reader }),
		named("repair of a reader alone, a request is executed twice", whole, func(in *Instance) { repairAlone(in); in.Shares[0], in.Duplicates, in.Breaks = reader, 1, false }),
		named("repair of a reader, beside a writer", 7, readerRepair),
		named("a slot that is extended and repaired, beside another", 0, slotRepair),
		named("repair of a reader after a writer was refused", whole, refusedWriter(reader)),
		named("repair of a slot after a writer was refused", whole, refusedWriter(slot(2))),
	}
}

func readerAndWriter(in *Instance) { in.Shares[0] = reader }
func twoSlots(in *Instance) {
	in.Shares, in.Again = [MaxClients]node.Share{slot(2), slot(2)}, 1
}

// oneServer lets the first client ask a second time when the other may have moved.
func oneServer(in *Instance) {
	twoSlots(in)
	in.Servers, in.Again, in.Tries, in.Duplicates = 1, 1, pair{2, 1}, 1
}
func downgrade(in *Instance)    { in.TTL, in.Downgrades[0], in.Shares[1] = 3, 1, reader }
func readerRepair(in *Instance) { repair(in); in.Shares[0] = reader }
func slotRepair(in *Instance) {
	repair(in)
	in.Shares = [MaxClients]node.Share{slot(2), slot(2)}
}

// refusedWriter lets a writer take the third node before the request of a share
// that has the other two. It is refused there, and undoes what it has.
func refusedWriter(share node.Share) func(*Instance) {
	return func(in *Instance) {
		repair(in)
		in.Shares[0], in.Depth = share, 9
		in.Start = slices.Concat(holds(0, 1), did(Begin, other), done(other, 2, acquires), done(other, 0, acquires))
	}
}

// sharingRules are the rules of locks with several holders, each of which must be
// missed. Most of them are among the arguments in drop.go.
func sharingRules() []Rule {
	apart := func(change func(*Instance)) func(*Instance) {
		return func(in *Instance) { change(in); in.Proposals = []int64{0, w} }
	}
	high := func(first, second node.Share) Instance {
		return from(keepAll(func(in *Instance) {
			in.Shares, in.Proposals = [MaxClients]node.Share{first, second}, []int64{-w, w}
		}), holdsWith(w))
	}
	return []Rule{
		{"a reader is admitted beside a writer", "reader beside writer", two(apart(readerAndWriter)), TwoLeases},
		{"a writer is admitted beside a reader", "writer beside reader", two(apart(readerAndWriter)), TwoLeases},
		{"a slot has two holders", "slot twice", two(apart(twoSlots)), TwoLeases},
		{"grants of two slots counted together", "slots together", two(twoSlots), TwoLeases},
		{"a reader at the floor is granted", "reader at the floor", from(keepAll(readerAndWriter), did(Begin, other), done(other, 0, acquires)), TokenOrder},
		{"a reader is not compared with the floor", "reader without a floor", high(node.Share{}, reader), TokenOrder},
		{"a writer is compared with the floor", "writer at the floor", high(reader, node.Share{}), TokenOrder},
		{"a slot is compared with the floor", "writer at the floor", high(reader, slot(2)), TokenOrder},
		{"a release of a reader raises the fence alone", "floor stays at a release", two(keepAll(func(in *Instance) {
			in.Clients, in.Tries, in.Shares[0], in.NoGhosts = 1, pair{1}, reader, true
		})), Orphan},
		{"no repair of a reader below the floor", "repair below the floor", two(refusedWriter(reader)), Unrepaired},
		{"no repair of a slot below the floor", "repair below the floor", two(refusedWriter(slot(2))), Unrepaired},
		{"a copy of a request moves a slot", "copy moves", from(keepAll(oneServer), begins(0), done(0, 0, acquires), ticks(1), did(Begin, 1)), TwoLeases},
		{"an earlier proposal moves a slot", "late moves", from(keepAll(oneServer), begins(0), done(0, 0, acquires), did(Release, 0), did(Begin, 1)), TwoLeases},
		{"a repair takes the slot of another", "repair takes", from(func(in *Instance) { slotRepair(in); in.Extensions[0] = 2 }, repairing(),
			ticks(1), did(Begin, other), done(other, 2, acquires), done(0, 2, repairs)), TwoLeases},
	}
}
