package model

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"slices"
)

// The largest instance there is room for.
const (
	MaxClients = 3
	MaxNodes   = 5
	maxClaims  = 4 // tries, times proposals in each
)

// none stands for a token that there is not.
const none int8 = -128

// always stands for a time that is long enough to make no difference.
const always int8 = 127

// State is everything at one moment. Times are in ticks from now, tokens in
// units from now.
type State struct {
	Clients [MaxClients]Client
	Nodes   [MaxNodes]Node
	// Top is the highest token that a lease was acquired with. No client or
	// node knows it: it is for the checking alone.
	Top int8
	Bad Violation
	// What is left of the bounds.
	Dups, Empty, Stale, Flush, Steps uint8
}

// Phase is what a client is doing.
type Phase uint8

// The phases of a client.
const (
	Idle   Phase = iota
	Asking       // for the lock
	Holds        // a lease that is valid
	Lapsed       // with ExtendRevives: had one, and hopes for an extension
)

// Client is one who wants the lock. Its claims are numbered; the tries before
// the current one are over.
type Client struct {
	Phase   Phase
	Try     uint8 // how many attempts have begun
	Prop    uint8 // which proposal of the attempt is the latest
	Elapsed int8  // since the first send of it
	Left    int8  // of the lease
	Ext     uint8 // 0: no extension; 1: asked for; 2: a quorum has granted it
	ExtAge  int8  // since the first send of the extension
	Exts    uint8 // how many have begun
	Floor   int8  // Top when the latest proposal was made
	// Tokens are those of each attempt and proposal.
	Tokens [maxClaims]int8
}

// Node is one place that grants the lock.
type Node struct {
	Key   uint8 // whose, by claim; 0 if free
	Left  int8  // of the key
	Fence int8
	Kept  int8 // how long the fence is kept yet

	Marked Mark
	Sits   int8 // how long the node sits out yet

	Saved Disk

	Member uint8 // of which clients' lists, as a bit set
	Skew   int8  // how far its clock is ahead, in units

	Msgs [MaxClients]Msgs
	Got  [MaxClients]Got
}

// Disk is what a node has saved, and restarts with. Its times run on.
type Disk struct {
	Saved             bool
	Key               uint8
	Left, Fence, Kept int8
}

// Mark is the list that a node is marked for.
type Mark uint8

// The markings, where the list is being changed.
const (
	MarkedOld  Mark = iota // for the first client's list
	MarkedBar              // no longer for that, and not yet for the other
	MarkedNew              // for the second's
	MarkedNone             // a new node
)

func (k Mark) String() string {
	return [...]string{"marked for the old list", "barred", "marked for the new list", "not marked"}[k]
}

// Msgs is the set of a client's messages that are on their way to one node.
type Msgs uint16

// Where in the set each kind of message begins: an acquire for each attempt and
// proposal, a release and a repair for each attempt. Of the extensions only
// those of the latest round count.
const (
	acquireAt   = 0
	releaseAt   = 4
	extendAt    = 8
	extendOldAt = 9
	repairAt    = 13
)

// Got is what a client has heard from one node.
type Got uint8

const (
	gotGrant   Got = 1 << iota // of the latest proposal
	gotExtend                  // of the latest extension
	gotAbsent                  // the node has no key to extend
	gotTrust                   // the node was found trusted once
	lateGrant                  // the answer is on its way
	lateExtend                 // the same
)

// Violation is what must not be.
type Violation uint8

// The violations.
const (
	Fine Violation = iota
	TwoHolders
	TokenOrder
	Created
	Ghost
)

func (v Violation) String() string {
	return [...]string{"", "two valid leases at once", "a token that is not above an earlier lease's", "an extension that creates", "a key that nobody takes back"}[v]
}

// list returns the nodes in use.
func (m *Model) list(s *State) []Node { return s.Nodes[:m.b.Nodes] }

// key packs what a node is into words that can be ordered.
func (n *Node) key() [4]uint64 {
	w := func(b ...uint8) (x uint64) {
		for _, v := range b {
			x = x<<8 | uint64(v)
		}
		return x
	}
	saved := uint8(0)
	if n.Saved.Saved {
		saved = 1
	}
	return [4]uint64{
		w(n.Key, uint8(n.Left), uint8(n.Fence), uint8(n.Kept), uint8(n.Marked), uint8(n.Sits), n.Member, uint8(n.Skew)),
		w(saved, n.Saved.Key, uint8(n.Saved.Left), uint8(n.Saved.Fence), uint8(n.Saved.Kept)),
		uint64(n.Msgs[0])<<48 | uint64(n.Msgs[1])<<32 | uint64(n.Msgs[2])<<16,
		w(uint8(n.Got[0]), uint8(n.Got[1]), uint8(n.Got[2])),
	}
}

func less(a, b *[4]uint64) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// packed is a state with its nodes in order, so that states which differ only
// in the names of nodes are alike.
type packed struct {
	nodes   [MaxNodes][4]uint64
	clients [MaxClients]Client
	rest    [7]uint8
}

func (m *Model) pack(s *State) packed {
	p := packed{clients: s.Clients, rest: [7]uint8{uint8(s.Top), uint8(s.Bad), s.Dups, s.Empty, s.Stale, s.Flush, s.Steps}}
	n := m.b.Nodes
	for i := range n {
		k := s.Nodes[i].key()
		j := i
		for ; j > 0 && less(&k, &p.nodes[j-1]); j-- {
			p.nodes[j] = p.nodes[j-1]
		}
		p.nodes[j] = k
	}
	return p
}

// Fingerprint returns the same for states that are alike but for the names of
// nodes and, where these are interchangeable, of the first two clients.
func (m *Model) Fingerprint(s *State) Print {
	if !m.symmetric {
		return PrintOf(m.seeds, m.pack(s))
	}
	order := s.Clients[0].compare(&s.Clients[1])
	if order < 0 {
		return PrintOf(m.seeds, m.pack(s))
	}
	t := m.swapped(s)
	f := PrintOf(m.seeds, m.pack(&t))
	if order == 0 {
		if g := PrintOf(m.seeds, m.pack(s)); g.less(f) {
			return g
		}
	}
	return f
}

func (cl *Client) compare(d *Client) int {
	return cmp.Or(
		cmp.Compare(cl.Phase, d.Phase), cmp.Compare(cl.Try, d.Try), cmp.Compare(cl.Prop, d.Prop),
		cmp.Compare(cl.Elapsed, d.Elapsed), cmp.Compare(cl.Left, d.Left),
		cmp.Compare(cl.Ext, d.Ext), cmp.Compare(cl.ExtAge, d.ExtAge), cmp.Compare(cl.Exts, d.Exts),
		cmp.Compare(cl.Floor, d.Floor), slices.Compare(cl.Tokens[:], d.Tokens[:]))
}

// Print stands for a state in the set of those seen. Two states having the same
// by chance is out of the question: it has 128 bits.
type Print [2]uint64

func (p Print) less(q Print) bool { return p[0] < q[0] || p[0] == q[0] && p[1] < q[1] }

// Seeds are what prints are made with: the same for all of one search.
type Seeds [2]maphash.Seed

// NewSeeds returns new ones.
func NewSeeds() Seeds { return Seeds{maphash.MakeSeed(), maphash.MakeSeed()} }

// PrintOf returns a value's print.
func PrintOf[T comparable](s Seeds, v T) Print {
	return Print{maphash.Comparable(s[0], v), maphash.Comparable(s[1], v)}
}

// swapped exchanges the first two clients.
func (m *Model) swapped(s *State) State {
	t := *s
	t.Clients[0], t.Clients[1] = s.Clients[1], s.Clients[0]
	for i := range m.list(&t) {
		n := &t.Nodes[i]
		n.Msgs[0], n.Msgs[1] = n.Msgs[1], n.Msgs[0]
		n.Got[0], n.Got[1] = n.Got[1], n.Got[0]
		n.Key, n.Saved.Key = swapKey(n.Key), swapKey(n.Saved.Key)
	}
	return t
}

// A key is 1 + client·4 + try.
func keyOf(client int, try uint8) uint8 { return 1 + uint8(client)<<2 + try }

func swapKey(k uint8) uint8 {
	if k == 0 || k > 8 {
		return k
	}
	return (k - 1) ^ 4 + 1
}

// count returns how many nodes have told the client so.
func (m *Model) count(s *State, c int, g Got) int {
	n := 0
	for i := range m.list(s) {
		n += bits.OnesCount8(uint8(s.Nodes[i].Got[c] & g))
	}
	return n
}
