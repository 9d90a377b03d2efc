package model

// Sibling is the design without one of its rules, where that shows.
type Sibling struct {
	Name   string
	Rules  Rules
	Bounds Bounds
	Want   Violation
}

// Siblings returns those that must be found broken. The first ones are the rows
// of the table in the design, in its order.
func Siblings() []Sibling {
	from := func(start []Step, change func(b *Bounds)) Bounds {
		b := base(change)
		b.Start = start
		return b
	}
	return []Sibling{
		{"a restarted node is believed at once", Rules{BelievedAtOnce: true}, base(loss), TwoHolders},
		{"the same, with old data", Rules{BelievedAtOnce: true}, base(oldData), TwoHolders},
		{"quarantine of a TTL", Rules{QuarantineOfTTL: true}, base(loss), TokenOrder},
		{"retention of a TTL", Rules{RetentionOfTTL: true}, base(fewTokens), TokenOrder},
		{"quarantine and retention without the skew of clocks", Rules{SkewIgnored: true}, from(append(holdsWith(2*w), Step{Kind: Empty}, Step{Kind: ClockBack}, Step{Kind: ClockBack, Node: 2}), clocksBack), TokenOrder},
		{"grants of two proposals counted together", Rules{MixedGrants: true}, from(append(holds(0, 1), Step{Kind: End}, Step{Kind: Carry, Arg: releaseAt}), again), TokenOrder},
		{"no window, a clock far ahead", Rules{NoWindow: true}, from(append(holdsWith(5*w), Step{Kind: Empty}), farAhead), TokenOrder},
		{"no window, a clock far behind", Rules{NoWindow: true}, from(append(holdsWith(0), Step{Kind: Empty}), farBehind), TokenOrder},
		{"lower bound only where a fence is", Rules{LooseLower: true}, from(append(append([]Step{{Kind: Save}}, holdsWith(0)...), Step{Kind: OldData}), cutTail), TokenOrder},
		{"validity from the reply", Rules{ValidityFromReply: true}, base(fewTokens), TwoHolders},
		{"extension by any one node", Rules{ExtendByOne: true}, base(extension), TwoHolders},
		{"extension that creates, to the letter", Rules{ExtendCreates: true}, base(extension), Created},
		{"extension that creates", Rules{ExtendCreates: true}, from(extending(0, 1), func(b *Bounds) { extensionLoss(b); b.Created = false }), TwoHolders},
		{"marker looked at once for an address", Rules{CachedMarker: true}, base(func(b *Bounds) { loss(b); b.Tries[0], b.Proposals = 2, []int8{0} }), TokenOrder},
		{"a flush that leaves the node trusted", Rules{FlushKeepsMark: true}, base(func(b *Bounds) { b.Flushes, b.Proposals = 1, []int8{0, w} }), TwoHolders},
		{"a node replaced without a hand-over", Rules{AnyList: true}, base(handOver), TwoHolders},
		{"a hand-over without a quarantine", Rules{ListAtOnce: true}, base(handOver), TwoHolders},
		{"a barred node counts for the new list", Rules{BarredAgrees: true}, from([]Step{remark(0, MarkedBar), remark(3, MarkedNew)}, handOver), TwoHolders},
		{"an extension by the old list", Rules{ExtendOtherList: true}, from(append(holds(1, 2), remark(0, MarkedBar), remark(1, MarkedBar), remark(0, MarkedNew), remark(3, MarkedNew)), handOverExtended), TwoHolders},
		{"a quorum of N/2", Rules{HalfQuorum: true}, base(func(b *Bounds) { b.Nodes = 4 }), TwoHolders},
		{"no drift", Rules{NoDrift: true}, base(fewTokens), TwoHolders},
		{"no fence", Rules{NoFence: true}, base(fewTokens), TokenOrder},
		{"a leap as wide as the window", Rules{LeapOfWindow: true}, from(append(holdsWith(2*w), Step{Kind: Empty}), creep), TokenOrder},
		{"the value kept after taking back", Rules{SameValue: true}, base(func(b *Bounds) { b.Tries[0] = 2 }), TokenOrder},
		{"a release that does not compare", Rules{ReleaseUnchecked: true}, from([]Step{{Kind: Begin}, {Kind: End}, {Kind: Begin}, {Kind: Carry, Arg: 1}}, func(b *Bounds) { b.Tries[0], b.TTL = 2, 3 }), TwoHolders},
		{"a repair that does not look at the marker", Rules{RepairUnguarded: true}, from(append(repairing(), Step{Kind: Tick}, Step{Kind: Begin, Client: 1}, Step{Kind: Carry, Client: 1, Node: 2}), repairLater), TwoHolders},
		{"the same, and it is counted", Rules{RepairUnguarded: true, RepairCounted: true}, from(extending(0, 1), repairLoss), TwoHolders},
		{"undo only where a grant was seen", Rules{UndoGrantedOnly: true}, base(twoTries), Ghost},
		{"a release that leaves the fence", Rules{ReleaseNoFence: true}, base(twoTries), Ghost},
		{"a repair though the fence is at its token", Rules{RepairAtItsFence: true}, base(repairAlone), Ghost},
		{"a late repair that is not taken back", Rules{RepairStands: true}, from(holds(0, 1), repairGhosts), Ghost},
	}
}

// Spare returns siblings that no search has found broken: rules that exclusion
// and the order of tokens do not lean on. docs/testing/model.md says what they are for.
func Spare() []Sibling {
	return []Sibling{
		{"a repair is counted", Rules{RepairCounted: true}, base(repairLoss), Fine},
		{"a repair without a quorum's extension", Rules{RepairUnasked: true}, base(repairLoss), Fine},
		{"an extension brings back a lease that lapsed", Rules{ExtendRevives: true}, base(extension), Fine},
	}
}
