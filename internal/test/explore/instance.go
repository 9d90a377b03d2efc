package explore

import (
	"cmp"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// Tick is one step of time. The drift that a lease gives up, a hundredth of its
// time to live and 2 ms, is just above one tick, so that a lease of n ticks ends
// after n-1, and the keys of a node with a fast clock may expire then, too.
const Tick = 2 * time.Millisecond

// The largest instance there is room for.
const (
	MaxClients = 2
	MaxTries   = 2
	MaxServers = 4
	maxClaims  = MaxClients * MaxTries
)

// pair is a number for each client.
type pair = [MaxClients]int

// ms is a thousand tokens: they are counted in microseconds. It is also
// node.TokenLeap, and half a tick.
const ms = 1000

// Instance is what is searched. Times are in ticks, tokens in microseconds from
// now.
type Instance struct {
	Name    string
	Clients int
	Servers int

	TTL    int
	Window int
	Limit  int // after so long an answer is not waited for; 0 for TTL-1
	// Patience is how long a minority of answers is waited for; 0 for Limit.
	Patience int
	Skew     int // how far ahead the clocks of the nodes are at first

	// Proposals are the tokens that a client may propose, from now. With Raise,
	// also the highest fence of all nodes and one more.
	Proposals []int64
	Raise     bool

	// Shares is what each client asks for: all of the lock, unless it says
	// otherwise.
	Shares [MaxClients]node.Share

	// How often things may happen.
	Tries      pair // claims of each client, one after the other
	Again      int  // further proposals of a claim
	Extensions [MaxClients]int
	Downgrades pair // of a writer to a reader
	Repairs    bool
	Duplicates int  // requests that are executed twice
	LateReply  bool // answers may be late
	Breaks     bool // connections may break: there is no answer, before the limit
	InOrder    bool // nodes execute in order: a request that is overtaken was sent again
	EmptyStart int  // restarts without data
	OldStart   int  // restarts with data of an earlier moment
	Flushes    int
	ClocksBack int  // node clocks that are set back, from ahead to as far behind
	BreakUps   bool // an operator breaks the lock once, on one node after the other
	Waits      bool // refused claims wait in queues, and are notified
	// Passes lets the first client's second claim wait behind its first, in the
	// same process, which passes the lease on to it.
	Passes bool

	// Fence is where all fences are at first, in microseconds from the nodes'
	// clocks; 0 for none. With Frozen no time passes.
	Fence  int64
	Frozen bool

	// Lists are the servers of each client's membership, with a membership change
	// in progress. If there are none, all clients have all servers.
	Lists [MaxClients][]int
	// Runs is how often an operator begins it, Former what the last run lists as the
	// former membership instead, and Silences how often a server does not answer. With
	// Back the last run takes it back. With Unguarded the first client's guard is off. With
	// Later the new list is given out after the change, so that clients mark no new server.
	Runs, Silences         int
	Former                 []int
	Back, Unguarded, Later bool

	// Failback replaces a server by a replica that lacks its last writes,
	// and lets it come back as it was. With Replaced, it is by an empty server.
	Failback, Replaced bool

	// NoGhosts also forbids orphaned keys.
	NoGhosts bool
	// FencesKept says that fences are remembered for ever, unless a node loses them.
	FencesKept bool

	// MayCreate says that an extension that creates a key is no finding by itself.
	MayCreate bool

	// What is made wrong. Quarantine and Retention are in ticks: 0 for what the
	// design asks for, and -1 for none.
	Quarantine     int
	Retention      int
	SameValue      bool // the next claim of a client has the value of the last
	CachedMarker   bool // a client that a node granted once does not compare its marker again
	SameMembership bool // clients of two memberships have one id for them

	// Start is what has happened before the search begins.
	Start []Step
	// Depth and States bound the search; 0 for none.
	Depth, States int
	// KeepAll says that no message is dropped: a rule is switched off on which the
	// arguments in drop.go lean.
	KeepAll bool
	// Tests is the depth to which the tests search it: 0 for not at all, or whole.
	// make model searches all instances, to their end or to a bound.
	Tests int
}

// machine is an instance, with what follows from it.
type machine struct {
	in     Instance
	cfg    [MaxClients]protocol.Config
	guard  [MaxClients]*node.Guard
	lists  [MaxClients][]int // the servers of each client
	limit  protocol.Instant
	keep   time.Duration // how long fences are remembered
	values [maxClaims]string
	sym    bool // the two clients can change places
	// inOrder has the nodes that execute in order.
	inOrder protocol.Set
	// seen counts what happened: a search in which nothing happens finds nothing.
	seen map[string]int
}

const (
	oldMembership = "00000000000000aa"
	newMembership = "00000000000000bb"
)

// lock is the name that everybody wants.
const lock = "lock"

func newMachine(in Instance) *machine {
	m := &machine{in: in, seen: map[string]int{}}
	ttl, window := time.Duration(in.TTL)*Tick, time.Duration(in.Window)*Tick
	limit := cmp.Or(in.Limit, in.TTL-1)
	m.limit = time.Duration(limit) * Tick
	// What the design asks for at least: above 2 (W + δ), δ being how far the
	// nodes' clocks may be off. The margin for clocks that run fast is left out,
	// which is as if every node's did.
	spread := 2*(in.Window+in.Skew) + 1
	quarantine := max(0, cmp.Or(in.Quarantine, max(in.TTL, spread)))
	m.keep = time.Duration(cmp.Or(in.Retention, max(spread, in.TTL+in.Window))) * Tick
	if in.FencesKept || in.Repairs {
		// The repair of a long lease asks for a fence that is as old.
		m.keep = time.Hour
	}
	for c := range in.Clients {
		list, generation := oldMembership, 1
		m.lists[c] = []int{0, 1, 2, 3}[:in.Servers]
		if m.changes() {
			m.lists[c], generation = in.Lists[c], 1+c
		}
		if c > 0 && m.changes() && !in.SameMembership {
			list = newMembership
		}
		m.guard[c] = &node.Guard{Membership: list, Generation: uint64(generation), MaxTTL: ttl, Window: window, Quarantine: time.Duration(quarantine) * Tick}
		if m.changes() {
			m.guard[c].Nodes = strings.Join(names(m.lists[c]), " ")
			m.guard[c].Off = in.Unguarded && c == 0
		}
		m.cfg[c] = protocol.Config{
			Nodes: len(m.lists[c]), TTL: ttl, Window: window,
			Limit: m.limit, Patience: time.Duration(cmp.Or(in.Patience, limit)) * Tick, RetryDelay: Tick, NoWait: true, MaxHold: protocol.Unlimited,
			Share: in.Shares[c],
		}
		if in.Waits {
			m.cfg[c].NoWait = false
		}
		m.cfg[c].KeepAlive = in.Passes && c == 0
		for try := range MaxTries {
			v := try
			if in.SameValue {
				v = 0
			}
			// The text of a value is 32 digits and an owner.
			m.values[c*MaxTries+try] = protocol.NewValue([16]byte{byte(1 + c*MaxTries + v)}, "x")
		}
	}
	if in.InOrder {
		m.inOrder = protocol.All(MaxServers)
	}
	m.sym = in.Clients == 2 && !m.changes() && !in.Waits && !in.Passes && in.Tries[0] == in.Tries[1] && in.Extensions[0] == in.Extensions[1] &&
		in.Shares[0] == in.Shares[1] && in.Downgrades[0] == in.Downgrades[1]
	return m
}

// changes reports whether there is a membership change.
func (m *machine) changes() bool { return m.in.Lists[0] != nil }

// shared reports whether the lock may have several holders.
func (m *machine) shared() bool {
	return m.in.Shares != [MaxClients]node.Share{} || m.in.Downgrades != pair{}
}
