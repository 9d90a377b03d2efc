package protocol

import (
	"time"

	"github.com/redlatch/redlatch/node"
)

// This file is what a claim knows about each node.

// holding is what a node may have of the claim.
type holding uint8

const (
	// nothing: the node has nothing of the claim.
	nothing holding = iota
	// leftover: the node may have a key, from a request without an answer or
	// one that is being undone, or a place in its queue.
	leftover
	// granted: the node granted the lock.
	granted
)

// member is one node, as the claim knows it.
type member struct {
	// What the node may have of the claim.
	holds    holding
	inFlight bool // the last acquisition or repair has had no answer
	released bool // a release was sent
	offered  bool // it notified us while the claim could not ask
	unseen   bool // it answered the last round while the claim was busy

	// Its outcome in the last round, updated by later answers.
	got    Outcome
	status node.Status
	misfit Misfit
	wakes  bool // it will notify us
	remark bool // it has to be marked
	lease  bool // the holder is a lease, and not a foreign client
	// share is what it granted, or what the holder has.
	share node.Share

	rank   uint16
	seq    uint32 // the number of the last acquisition or repair
	server uint32 // the hash of its id; 0 for none
	left   time.Duration
	fence  node.Token
	now    int64        // its clock, in microseconds
	holder name         // the holder's value
	free   node.SlotSet // the slots that were free
}

// name is the hash of a text that is only compared. It keeps a claim small. 0
// is no text. If two texts had the same hash, a claim might yield without need,
// or not count a node.
type name uint64

func nameOf(text string) name {
	if text == "" {
		return 0
	}
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return name(max(h, 1))
}

// short is a name in less space; 0 for none.
func (n name) short() uint32 {
	if n == 0 {
		return 0
	}
	return max(uint32(n)^uint32(n>>32), 1)
}
