package model

import "slices"

// Rules says which rules of the design are left out. The zero value is the
// design. docs/algorithm.md has each rule, and why it is there.
type Rules struct {
	// The round.
	HalfQuorum        bool // N/2 grants are enough
	ValidityFromReply bool // validity is counted from the last grant, not from the first send
	NoDrift           bool // nothing is taken off for clocks that run at different rates
	SameValue         bool // the next try keeps the value whose grants are being taken back

	// Taking back.
	UndoGrantedOnly  bool // only nodes whose grant was seen are sent a release
	ReleaseNoFence   bool // a release does not raise the fence
	ReleaseUnchecked bool // a release deletes whatever is there

	// Tokens.
	MixedGrants    bool // grants of two proposals are counted together
	NoFence        bool // nodes keep no fence, tokens are judged by the window alone
	NoWindow       bool // any token above the fence is accepted
	LooseLower     bool // the window's lower bound is checked only where there is a fence
	RetentionOfTTL bool // a fence is kept for a TTL
	NoLeap         bool // a token ahead of the window is refused, however near the fence
	LeapOfWindow   bool // a token may leap over its fence by as much as the window
	SkewIgnored    bool // quarantine and retention leave out how far clocks may be off

	// Extension and repair.
	ExtendByOne      bool // one node's word extends a lease
	ExtendCreates    bool // an extension sets a key that is not there
	ExtendRevives    bool // an extension brings back a lease whose deadline has passed
	RepairCounted    bool // a repair counts as an extension
	RepairUnasked    bool // a repair is sent though no quorum has extended
	RepairAtItsFence bool // a repair is carried out though the fence is at its token
	RepairStands     bool // what a repair set after the release is not taken back
	RepairUnguarded  bool // a repair does not look at the marker

	// The restart guard.
	BelievedAtOnce  bool // a node that restarted grants at once
	QuarantineOfTTL bool // a node sits out for a TTL
	CachedMarker    bool // a client that found a node trusted once does not look again
	FlushKeepsMark  bool // what a node is trusted by survives a flush

	// The list of nodes.
	AnyList         bool // nodes do not compare the caller's list with their own
	ListAtOnce      bool // a change of list has no quarantine
	BarredAgrees    bool // a node that is barred counts as one of the new list
	ExtendOtherList bool // an extension does not compare the list
}

// Bounds is the size of what is explored. Times are in ticks, tokens in units
// of a fraction of a tick.
type Bounds struct {
	Clients int // at most MaxClients
	Nodes   int // at most MaxNodes

	TTL    int8
	Drift  int8 // how much earlier than its time a key, or a quarantine, may end
	Window int8
	Skew   int8 // how far ahead of the true time the nodes' clocks are at first

	// What a client may propose, in units ahead of the true time. A proposal of
	// one above the highest fence is possible besides, if Raise is set.
	Proposals []int8
	Raise     bool

	// How often things may happen.
	Tries      [MaxClients]int // attempts of each client
	Again      int             // further proposals in an attempt
	Extensions [MaxClients]int
	Repairs    bool
	// LoseRepairs has the answers of repairs get lost, too, after the lease.
	LoseRepairs bool
	Duplicates  int
	LateReply   bool // answers may be on their way for any time
	EmptyStart  int  // restarts without data, of any node
	StaleStart  int  // restarts with data from an earlier moment
	Flushes     int
	Steps       int // of a node's clock, from so far ahead to as far behind

	// LongKept has fences be kept for ever, unless a node loses them.
	LongKept bool

	// Lists of nodes, as bit sets, one for each client; all nodes if 0. With
	// Former set, a change from the first client's list to the second's is
	// under way.
	Lists  [MaxClients]uint8
	Former bool

	// NoGhosts also forbids a key of a claim that is over where nothing is on
	// its way any more that would remove it.
	NoGhosts bool

	// Created also forbids that an extension sets a key, be it harmless.
	Created bool

	// Fence is where all fences are at first, in units ahead of the nodes'
	// clocks: as after all clocks were set back. Frozen has time stand still.
	Fence  int8
	Frozen bool

	// Start is what has happened before the search begins.
	Start []Step
}

// unit is how many units of a token there are in a tick: a token may leap over
// its fence by one unit, which is little beside the window.
const unit = 4

// sizes is what follows from rules and bounds.
type sizes struct {
	window, leap    int8 // units
	retention       int8 // ticks
	quarantine      int8 // ticks
	low             int8 // units: tokens below are as good as this
	drift, validity int8 // ticks
	loss            int8 // units: how much older tokens are when a node that forgot grants again
}

func sizesOf(r Rules, b Bounds) sizes {
	z := sizes{window: b.Window * unit, leap: 1, drift: b.Drift}
	spread := 2 * (b.Window + b.Skew)
	if r.SkewIgnored {
		spread = 2 * b.Window
	}
	// Both are the smallest that the design allows: above 2 (W + δ), with the
	// drift by which the node's clock may end them too early.
	z.retention = max(spread+1, b.TTL+b.Window)
	z.quarantine = max(b.TTL, spread+1) + b.Drift
	if b.LongKept {
		z.retention = always
	}
	if b.Repairs {
		// A repair asks for a fence that is as old as the lease, and so is
		// kept far longer than anything else here lasts.
		z.retention = always
	}
	if r.RetentionOfTTL {
		z.retention = b.TTL
	}
	if r.QuarantineOfTTL {
		z.quarantine = b.TTL + b.Drift
	}
	if r.LeapOfWindow {
		z.leap = z.window
	}
	z.validity = b.TTL - b.Drift
	if r.NoDrift {
		z.validity = b.TTL
	}
	if !r.BelievedAtOnce && !r.CachedMarker && !r.FlushKeepsMark {
		z.loss = (z.quarantine - z.drift) * unit
	}
	// A lease that is extended for as long as the bounds allow has a token
	// that is never below this.
	z.low = -unit * (b.Window + 2*b.Skew + b.TTL*int8(2+slices.Max(b.Extensions[:])) + 2)
	return z
}
