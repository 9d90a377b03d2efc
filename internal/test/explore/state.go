package explore

import (
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
)

// State is everything at one moment. What pointers lead to is shared between
// states, and is copied before it is changed.
type State struct {
	step   Step        // that led here
	said   node.Status // what a server answered in it
	choice *choice     // while the step is taken

	now      protocol.Instant
	claims   [maxClaims]*claim
	servers  [MaxServers]*nodestate.Server
	saved    [MaxServers]*nodestate.Server // what a server has on disk; nil for nothing
	skew     [MaxServers]int8              // how far its clock is ahead, in ticks
	messages []*message                    // in the order in which they were sent
	wakes    []wake
	op       *operator // the membership change that runs; copied, as claims are
	orders   []order

	// top is the highest token of any lease so far, and written of any that was
	// not a reader's from the beginning. Nobody but the checks knows them.
	top, written node.Token
	bad          Violation
	// skip says that the step need not be taken.
	skip bool
	// broken is the token of the operator's break, 0 before it begins. It has been
	// executed by the servers in reached, and granted by those in freed.
	broken         node.Token
	reached, freed uint8

	// What is left of the instance's bounds.
	dups, empty, old, flush, back uint8
	restarts, runs, silences      uint8
	returns                       [MaxClients]uint64 // as in the runner: from when on a membership is back
	left                          uint8              // Passes: how many have left
	let, beside                   uint8              // who was let in by the line, or asks beside it
	unheard                       bool               // that a lease was not extended, by the line
	line                          protocol.Line      // the local queue of the first client
	waits                         [MaxTries]*protocol.Waiter
	look                          protocol.When     // when the line looks
	trusts                        [MaxClients]uint8 // CachedMarker: servers that granted
	// Failback: the epochs that a client knows, and the lineage that it has seen on
	// each server.
	epochs   [MaxClients]node.Epochs
	lineages [MaxClients][MaxServers]string
}

// claim is a claim, and what is needed to check it.
type claim struct {
	protocol.Claim
	rounds     int
	extensions int
	over       bool // it was refused, or its lease has ended
	broken     bool // a quorum had broken the lock when the extension was sent
	downgrades int
	floor      node.Token // top, when the round began; for a reader, written
	asked      node.Token // the token of the round

	// Of a claim that waits in its process: when it came, and which claims were in
	// the queues of a quorum then.
	came  protocol.Instant
	ahead [maxClaims]bool
}

// message is a request in flight to a server.
type message struct {
	claim   int
	node    int // as the claim numbers it
	server  int
	seq     uint32
	req     node.Request
	sent    protocol.Instant
	awaited bool        // the claim waits for the answer
	again   bool        // InOrder: it was sent again, behind a later one
	done    bool        // it was executed
	reply   *node.Reply // an answer that is late
}

// wake is a notification in flight.
type wake struct {
	claim, node int
	node.Wake
}

// Violation is what must not be.
type Violation string

// The violations.
const (
	Fine          Violation = ""
	TwoLeases     Violation = "two valid leases at once"
	TokenOrder    Violation = "a token that is not above an earlier lease's"
	Created       Violation = "an extension that creates a key"
	Orphan        Violation = "an orphaned key"
	Revived       Violation = "a claim that is over asks for the lock"
	Unrepaired    Violation = "a valid lease that is refused its repair"
	Unbroken      Violation = "a broken lease that is extended"
	Forsaken      Violation = "a caller waits behind nobody"
	Overtaken     Violation = "a waiter elsewhere that came earlier is overtaken"
	OrphanedPlace Violation = "an orphaned place in a queue"
)

// base is when everything begins, by a right clock.
var base = time.UnixMicro(1_000_000_000_000_000)

// start is the client's monotonic clock then.
const start protocol.Instant = time.Hour

// clock is the right time.
func (s *State) clock() time.Time { return base.Add(s.now - start) }

// clockOf is the time by a server's clock.
func (s *State) clockOf(i int) time.Time {
	return s.clock().Add(time.Duration(s.skew[i]) * Tick)
}

func (m *machine) client(k int) int { return k / MaxTries }

// init returns the state in which everything begins: all nodes are trusted, and
// nobody has asked for anything.
func (m *machine) init() *State {
	s := &State{
		now: start, dups: uint8(m.in.Duplicates), empty: uint8(m.in.EmptyStart), old: uint8(m.in.OldStart),
		flush: uint8(m.in.Flushes), back: uint8(m.in.ClocksBack), runs: uint8(m.in.Runs), silences: uint8(m.in.Silences),
	}
	for i := range m.in.Servers {
		s.skew[i] = int8(m.in.Skew)
		srv := &nodestate.Server{ID: "first", Silent: !m.in.Waits}
		now := s.clockOf(i)
		// A new server carries no marker yet.
		if !m.changes() || slices.Contains(m.lists[0], i) && !m.in.Unguarded {
			const all = "00000000:1,00000001:1,00000002:1,00000003:1"
			srv.Mark(now, node.MarkRequest{Mark: node.MarkFresh, Guard: m.guard[0], Lineage: fmt.Sprintf("%08x", i), Epochs: all})
			srv.Marker.TrustedFrom = base.Add(-time.Hour) // for long
		}
		if m.in.Fence != 0 {
			srv.Apply(now, node.Request{
				Op: node.OpRelease, Name: lock, Value: "nobody", Fencing: node.Fencing{Token: node.Token(now.UnixMicro() + m.in.Fence), Window: time.Hour, Retention: m.keep},
			})
		}
		s.servers[i] = srv
	}
	return s
}

// clone returns a copy that can be changed.
func (s *State) clone() *State {
	t := *s
	t.messages = slices.Clone(s.messages)
	t.wakes = slices.Clone(s.wakes)
	t.line = s.line.Clone()
	return &t
}

// own returns a server that can be changed.
func (s *State) own(i int) *nodestate.Server {
	srv := s.servers[i].Clone()
	s.servers[i] = &srv
	return &srv
}

// ownClaim returns a claim that can be changed.
func (s *State) ownClaim(k int) *claim {
	c := *s.claims[k]
	s.claims[k] = &c
	return &c
}

// holders returns the holders of the lock on a server.
func (s *State) holders(i int) (all nodestate.Holders) {
	for _, h := range entry(s.servers[i]).Holders {
		if h.Until.After(s.clockOf(i)) {
			all = append(all, h)
		}
	}
	return all
}

// entry returns what a server stores of the lock.
func entry(srv *nodestate.Server) *nodestate.Entry {
	if srv != nil {
		if e := srv.Stored(lock); e != nil {
			return e
		}
	}
	return &nothing
}

var nothing nodestate.Entry

// has reports whether a value is one of the holders.
func has(all nodestate.Holders, value string) bool {
	return slices.ContainsFunc(all, func(h node.Holder) bool { return h.Value == value })
}

// valid reports whether a claim is a lease that its holder relies on.
func (s *State) valid(k int) bool {
	c := s.claims[k]
	return c != nil && c.State().IsHeld() && s.now < c.Deadline()
}

// excludes reports whether a claim is a lease that nobody may be granted beside. An
// operator's break takes that from those before it, until they notice.
func (s *State) excludes(k int) bool { return s.valid(k) && s.claims[k].Token() >= s.broken }

// view is the client of a claim, as the claim sees it.
type view struct {
	m      *machine
	s      *State
	client int
}

func (v view) Now() protocol.Instant              { return v.s.now }
func (v view) Time() time.Time                    { return v.s.clock() }
func (v view) Offset() time.Duration              { return 0 }
func (v view) ClockKnown() bool                   { return true }
func (v view) NoClocks() bool                     { return false }
func (v view) Suspects() protocol.Set             { return 0 }
func (v view) MayProbe(int) bool                  { return true }
func (v view) InQuarantine(int) bool              { return false }
func (v view) InOrder() protocol.Set              { return v.m.inOrder }
func (v view) Epoch(i int) uint64                 { return v.s.epoch(v.client, v.m.lists[v.client][i]) }
func (v view) Missed() uint32                     { return 0 }
func (v view) Random(time.Duration) time.Duration { return 0 }

// Token chooses one of the instance's proposals.
func (v view) Token(floor node.Token) node.Token {
	var tokens []node.Token
	add := func(t node.Token) {
		if t = max(t, floor); !slices.Contains(tokens, t) {
			tokens = append(tokens, t)
		}
	}
	for _, p := range v.m.in.Proposals {
		add(node.Token(v.s.clock().UnixMicro() + p))
	}
	if v.m.in.Raise {
		if highest := v.m.highest(v.s); highest != 0 {
			add(highest + 1)
		}
	}
	return tokens[v.s.choice.of(len(tokens))]
}

// highest is the highest fence of all servers.
func (m *machine) highest(s *State) (t node.Token) {
	for i := range m.in.Servers {
		if e := entry(s.servers[i]); e.FenceUntil.After(s.clockOf(i)) {
			t = max(t, e.Fence)
		}
	}
	return t
}

// choice goes through all combinations of choices, one run after the other.
type choice struct {
	path  []int // what was chosen
	outOf []int // out of how many
	at    int
}

// of chooses one out of n.
func (c *choice) of(n int) int {
	if c.at == len(c.path) {
		c.path, c.outOf = append(c.path, 0), append(c.outOf, n)
	}
	c.at++
	return c.path[c.at-1]
}

// next prepares the next run, and reports whether there is one.
func (c *choice) next() bool {
	c.at = 0
	for i := len(c.path) - 1; i >= 0; i-- {
		if c.path[i]+1 < c.outOf[i] {
			c.path[i]++
			c.path, c.outOf = c.path[:i+1], c.outOf[:i+1]
			return true
		}
	}
	return false
}
