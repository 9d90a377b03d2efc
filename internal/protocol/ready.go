package protocol

import "github.com/redlatch/redlatch/node"

// Ready is what a runner does after an event: field by field, in this order. It
// decides nothing. Handle sets all of it, in memory that may be used again.
type Ready struct {
	// Before anybody else sees the claim, under the mutex that Handle was called
	// with, if there is one.

	// Listen has notifications for the claim's value delivered to it. Unlisten,
	// which comes after it, ends that.
	Listen, Unlisten bool
	// Left is kept: a late request may still leave something of the claim.
	Left []Leftover
	// News are for the owner, in this order. A caller may return when it has heard
	// them, and ask again. Repaired has the nodes that have the lock again.
	News     []News
	Repaired Set

	// Then, at once. The outcome of each is an Answer with the same Seq.
	Send []Message

	// When all of that is on its way. Undo is releases, which are sent in the
	// background, again and again until the node confirms it or the key must have
	// expired.
	Undo []Message
	// Adopt asks whether the cluster parameters that the nodes reported are to be
	// adopted: Configured or Rejected. AwaitMark waits until nodes that lost their
	// marker are marked: Marked.
	Adopt, AwaitMark bool
	// Line is for the local queue of a lease: Line.Follow. The next caller asks after
	// the release was sent.
	Line LineNews

	// Last, Claim.Successor continues, with a new value: Resume, or Cancel if the caller
	// has left.
	Replaced bool
}

// Message is a request to a node.
type Message struct {
	Node    int
	Seq     uint32
	Request node.Request
	// Probe is set if a suspect node is sent it: it counts as one of those that
	// View.MayProbe limits, until its answer.
	Probe bool
	// Slow is set for an Undo at the pace of the clean-up queue: the node failed to
	// answer a moment ago, or nobody waits for it.
	Slow bool
}

// Leftover is the release of a claim that is over.
type Leftover struct {
	Request node.Request
	// Released is set for a lease that was released: only a place in a queue may be left.
	Released bool
}

// News is what the owner of a claim hears of it.
type News uint8

// The news.
const (
	// RoundOver: a round has ended, which Claim.Round describes.
	RoundOver News = iota + 1
	// YieldOver: nodes have answered whether the claim yields to those before it;
	// Claim.Yield describes it.
	YieldOver
	// Waits: the claim waits after a round that it did not win.
	Waits
	// Won: the claim is held.
	Won
	// Refused: the claim was given up; Claim.Verdict says why.
	Refused
	// Extended: the deadline was moved.
	Extended
	// NotExtended: an extension failed. The lease is unchanged.
	NotExtended
	// Ended: the lease is over; Claim.Cause says why.
	Ended
	// Freed: the release is over; Claim.Verdict says whether it was confirmed.
	Freed
)

// clear empties r, and keeps its memory.
func (r *Ready) clear() {
	clear(r.Left)
	clear(r.Send)
	clear(r.Undo)
	*r = Ready{Left: r.Left[:0], News: r.News[:0], Send: r.Send[:0], Undo: r.Undo[:0]}
}
