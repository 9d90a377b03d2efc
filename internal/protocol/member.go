package protocol

import (
	"math"
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
	inFlight uint16 // how many acquisitions and repairs have had no answer
	holds    holding
	// notified says that it notified us while the claim could not ask, and
	// unapplied that its last answer is stored, but was not handled yet.
	notified  bool
	unapplied bool

	// Its outcome in the last round, updated by later answers.
	got       Outcome
	status    node.Status
	misfit    Misfit
	wakes     bool // it will notify us
	needsMark bool // it has to be marked
	lease     bool // the holder is a lease, and not a foreign client
	// share is what it granted, or what the holder has.
	share node.Share

	rank   uint16
	seq    uint32 // the number of the last acquisition or repair
	server server // which one granted
	left   left
	holder hash // of the holder's value
	fence  node.Token
	now    int64        // its clock, in microseconds
	free   node.SlotSet // the slots that were free
}

// said reports that the node answered with a status.
func (m *member) said(s node.Status) bool { return m.got == Replied && m.status == s }

// where returns the nodes of which something is true.
func (c *Claim) where(is func(*member) bool) (set Set) {
	for i := range c.cfg.Nodes {
		if is(&c.nodes[i]) {
			set |= Of(i)
		}
	}
	return set
}

// quarantined reports that the node's quarantine has begun, and so will end.
func (m *member) quarantined() bool {
	return m.said(node.Quarantined) && !m.needsMark
}

// left is a time left in milliseconds, rounded up: that is 49 days at most, and
// keeps a claim small.
type left uint32

// forEver is the time left of a key without an expiry.
const forEver left = math.MaxUint32

func leftOf(d time.Duration) left {
	if d == node.NoExpiry {
		return forEver
	}
	return left(min((max(d, 0)+time.Millisecond-1)/time.Millisecond, time.Duration(forEver-1)))
}

func (l left) duration() time.Duration { return time.Duration(l) * time.Millisecond }

// hash is that of a text that is only compared. It keeps a claim small. 0 is no
// text. If two texts had the same hash, a claim might yield without need, or not
// count a node.
type hash uint32

func hashOf(text string) hash {
	if text == "" {
		return 0
	}
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return hash(max(uint32(h)^uint32(h>>32), 1))
}

// server is which server granted, and by which marker, in little space: 24 bits of
// the hash of its id, 0 for none, and 8 bits of the epoch, 0 for none.
type server uint32

func serverOf(r *node.Reply) (s server) {
	if r.Server != "" {
		s = server(max(hashOf(r.Server), 1<<8)) &^ 0xff
	}
	return s | server(epochBits(r.Epoch))
}

// id is the hash of its id; 0 for none.
func (s server) id() uint32 { return uint32(s >> 8) }

// epoch is what epochBits returns for its epoch.
func (s server) epoch() uint8 { return uint8(s) }

// epochBits is an epoch from 1 to 255, again and again; 0 for none.
func epochBits(epoch uint64) uint8 {
	if epoch == 0 {
		return 0
	}
	return uint8((epoch-1)%255) + 1
}
