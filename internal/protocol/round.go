package protocol

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is the arithmetic of a Redlock round: one request to all nodes at
// once, decided by the answers of a majority.

// Quorum returns the smallest majority of n nodes.
func Quorum(n int) int { return n/2 + 1 }

// QuorumAfter returns when a quorum of n nodes will grant; 0 if that is not known.
// left has the time until it for each node that will. It sorts left.
func QuorumAfter(left []time.Duration, n int) time.Duration {
	quorum := Quorum(n)
	if len(left) < quorum {
		return 0
	}
	slices.Sort(left)
	return left[quorum-1]
}

// Drift returns the part of a time to live that is not used, because clocks run
// at different rates and nodes expire keys with a limited resolution.
func Drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// Validity returns how long a lock is valid after a round that took elapsed
// from its first send. It is zero or negative if the round took too long.
func Validity(ttl, elapsed time.Duration) time.Duration { return ttl - elapsed - Drift(ttl) }

// Outcome is what is known about one node in a round.
type Outcome uint8

// The outcomes of a request to a node.
const (
	// Pending: the node was not asked, or has not answered yet.
	Pending Outcome = iota
	// Replied: the node's status says what it did.
	Replied
	// Busy: others changed the name at each try. An acquisition was refused by that,
	// as by a holder.
	Busy
	// Failed: there was no reply, and the request may still be executed.
	Failed
	// NotSent: there was no reply, and the request was not executed.
	NotSent
	// Late: the node did not answer within the time limit of the round.
	Late
	// Skipped: the node is suspect, and enough requests to it are in flight.
	Skipped
	// Unusable: the node must not be counted in this configuration.
	Unusable
)

// failed reports that the node gave no answer.
func (o Outcome) failed() bool { return o >= Failed }

// Round is one request to all nodes.
type Round struct {
	Op    node.Op
	share node.Share // what was asked for
	Seq   uint32
	Start Instant // before the first send
	End   Instant // when it was decided, if it is over
	Over  bool
	Won   bool // a quorum granted, when it was decided

	sent    Set     // nodes that were sent the request
	awaited Set     // nodes that the round waits for
	limit   Instant // when it ends, with or without answers
	until   When    // when it ends, once a quorum has answered
}

// Tally counts the outcomes of a round.
type Tally struct {
	Nodes   int
	Granted int
	Refused int // replied with anything but Granted
	Unfit   int // of those, in quarantine or marked for another membership
	Failed  int // gave no reply

	Quarantined int // of the unfit, in a quarantine that ends by itself
}

// Won reports that a quorum granted.
func (t Tally) Won() bool { return t.Granted >= Quorum(t.Nodes) }

// Lost reports that so many nodes refused, whatever the reason, that the nodes which
// may have the lock are no quorum. Nodes that gave no reply decide nothing.
func (t Tally) Lost() bool { return t.Nodes-t.Refused < Quorum(t.Nodes) }

// Freed reports, for a release, that a quorum of nodes does not have our key:
// they deleted it, or did not have it.
func (t Tally) Freed() bool { return !t.Lost() && t.Granted+t.Refused >= Quorum(t.Nodes) }

// Available reports that a quorum of nodes could have granted: a refusal is
// then another client's lock, and not an outage.
func (t Tally) Available() bool { return t.Nodes-t.Failed-t.Unfit >= Quorum(t.Nodes) }

// hopeless reports that no quorum can grant any more, and that the reason is
// known: the lock is held, or nodes are missing. While nodes are unfit, the
// round waits for all of them: the caller gains more from knowing what is wrong
// with the nodes than from a fraction of a round trip.
func (t Tally) hopeless() bool {
	firm := t.Refused - t.Unfit
	known := t.Granted+firm >= Quorum(t.Nodes) || t.Nodes-t.Failed < Quorum(t.Nodes)
	return known && t.Nodes-firm-t.Failed < Quorum(t.Nodes)
}

// decided reports that the round need not wait for the missing answers.
func (r *Round) decided(t Tally) bool {
	if t.Won() {
		return true
	}
	// Suspect nodes are not waited for only if the others can decide alone.
	enough := r.awaited == 0 && t.Granted+t.Refused >= Quorum(t.Nodes)
	switch r.Op {
	case node.OpAcquire:
		return enough || t.hopeless()
	case node.OpRelease:
		// That no quorum can grant any more decides nothing: a node without our
		// key is as good as one that deleted it. The missing answers say whether
		// the lock was lost.
		return enough || t.Lost() || t.Failed >= Quorum(t.Nodes)
	}
	// An extension also waits for suspect nodes: one of them may hold our key.
	return t.hopeless()
}

// slowness is how many times as long as the quorum the others may take.
const slowness = 4

// shorten makes an acquisition end soon after a quorum has answered: it does
// not wait for nodes that stopped answering, even if this round is the first to
// notice.
func (r *Round) shorten(now Instant, t Tally, patience time.Duration) {
	if r.Op != node.OpAcquire || r.until.IsSet() || t.Granted+t.Refused < Quorum(t.Nodes) {
		return
	}
	// If the time limit comes as soon, it ends the round, and the nodes have
	// timed out.
	r.until = At(min(r.limit, r.Start+max(patience, slowness*(now-r.Start))))
}

// timer is when the round ends by itself.
func (r *Round) timer() Instant { return r.until.Or(r.limit) }

// Elapsed returns how long the round took, once it is over.
func (r *Round) Elapsed() time.Duration { return r.End - r.Start }
