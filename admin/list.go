package admin

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/holders"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/internal/steptimeout"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// errCannotList is the error for a node that is no Lister.
var errCannotList = errors.New("redlatch: this kind of node cannot list its locks")

// LockState is what the nodes report about one lock. They may disagree: while
// contenders split them, after one was away, or after a break that did not
// reach a quorum.
type LockState struct {
	// Name is the lock's name, without the client's prefix.
	Name string
	// Held says that a quorum of nodes names the same holder.
	Held bool
	// Holders are the holders that the nodes name: every reader and every slot
	// has an entry of its own. Those that a quorum names come first, in the
	// order in which they got the lock. Of the others, which do not hold it, the
	// one that most nodes name comes first.
	Holders []redlatch.Holder
	// Fence is the highest token that any node remembers for the name: that of
	// the holder, of the last holder, or of a client that was refused. It is 0
	// if no node remembers one.
	Fence redlatch.Token
	// Broken is the token of the last Break that took the lock from a holder, as
	// far as any node remembers it; 0 for none.
	Broken redlatch.Token
	// Waiting is the number of clients that wait: the highest that any node
	// reports. A client counts once, however many of its goroutines wait: they
	// queue behind one that asks.
	Waiting int
	// Waiters are the first waiters, in the order of their tickets. Only Show
	// sets them.
	Waiters []WaiterState
	// Completed are the completed occurrences of the job, see redlatch.Once, the
	// one that is forgotten last first. Only Show sets them.
	Completed []CompletedState
	// CompletedSince is since when a quorum of nodes remembers what is
	// completed: an occurrence that was completed before may be forgotten. It is
	// zero if no quorum remembers anything of the job. Only Show sets it.
	CompletedSince time.Time
	// Nodes has one entry for each node, in the order of the client's nodes.
	Nodes []NodeListing
}

// CompletedState is a completed occurrence. One node that remembers it is enough:
// the next caller of Once has a quorum record it.
type CompletedState struct {
	Occurrence string
	// Until is when the last node forgets it.
	Until time.Time
	// Nodes is the number of nodes that have it.
	Nodes int
}

// WaiterState is a waiter for a lock.
type WaiterState struct {
	// Owner is host/pid/label.
	Owner string
	// Since is when it arrived, by the nodes' clocks.
	Since time.Time
	// Shared says that it waits as a reader. Slots is the number of slots, one
	// of which it waits for; 0 for a lock without slots.
	Shared bool
	Slots  int
	// Nodes is the number of nodes that have queued it.
	Nodes int
}

// NodeListing is what one node reports about a lock, or why it reports nothing.
type NodeListing struct {
	Node string
	node.Listing
	// Owner is the holder there, as in a Holder; the first one if there are
	// several. It is empty if the lock is free.
	Owner string
	// Token is the holder's token; 0 if it has none.
	Token redlatch.Token
	Err   error
}

// Survey is what the nodes report about all locks.
type Survey struct {
	// Locks are the locks that are held or waited for, sorted by name.
	Locks []LockState
	// Broken are the locks that were broken and are now free. Nodes remember a
	// break for about an hour.
	Broken []LockState
	// Failed are the nodes that did not answer.
	Failed []observe.Result
}

// List returns the locks that are held or waited for on any node, and those that
// were broken, as far as the nodes can list them: on Redis it finds no lock of a
// foreign Redlock client. If too few nodes answered, it returns what was found and
// a *redlatch.QuorumError. It takes time in proportion to the
// number of keys on the nodes; ctx ends it.
func (a *Admin) List(ctx context.Context) (*Survey, error) { return a.list(ctx, nil) }

// list is List for the nodes that answered a probe, if there was one. The others
// fail as they did then.
func (a *Admin) list(ctx context.Context, probed *Pulse) (*Survey, error) {
	start := a.c.Clock().Uptime()
	all, errs := ask(ctx, a.c, 0, func(ctx context.Context, m *runner.Member) (map[string]node.Listing, error) {
		if probed != nil && probed.Nodes[m.Index()].Err != nil {
			return nil, probed.Nodes[m.Index()].Err
		}
		n, ok := m.Node().(node.Lister)
		if !ok {
			return nil, errCannotList
		}
		found := map[string]node.Listing{}
		return found, runner.WithProgressTimeout(ctx, max(runner.WalkLimit, a.c.NodeTimeout()), func(ctx context.Context) error {
			return n.List(ctx, a.in.Prefix, func(l node.Listing) {
				found[l.Name] = l
				steptimeout.Tell(ctx)
			})
		})
	})
	s := &Survey{}
	for i, m := range a.c.Members() {
		if errs[i] != nil {
			s.Failed = append(s.Failed, observe.Result{Node: m.Name(), Err: errs[i]})
		}
	}
	keys := map[string]bool{}
	for _, found := range all {
		for key := range found {
			keys[key] = true
		}
	}
	for key := range keys {
		listings := make([]node.Listing, len(all))
		for i := range all {
			l, known := all[i][key]
			if !known {
				l = node.Listing{Name: key, Reply: node.Reply{Status: node.Absent}}
			}
			listings[i] = l
		}
		l := a.lockState(key, listings, errs)
		if len(l.Holders) == 0 && l.Waiting == 0 {
			s.Broken = append(s.Broken, l)
		} else {
			s.Locks = append(s.Locks, l)
		}
	}
	for _, locks := range [][]LockState{s.Locks, s.Broken} {
		slices.SortFunc(locks, func(a, b LockState) int { return cmp.Compare(a.Name, b.Name) })
	}
	return s, a.tooFew("", start, errs)
}

// Show returns what every node reports about one lock, which may have no token
// or belong to a foreign client. If too few nodes answered, it returns what was
// found and a *redlatch.QuorumError.
func (a *Admin) Show(ctx context.Context, name string) (*LockState, error) {
	key, err := a.in.Key(name)
	if err != nil {
		return nil, err
	}
	start := a.c.Clock().Uptime()
	found, errs := ask(ctx, a.c, a.c.NodeTimeout(), func(ctx context.Context, m *runner.Member) (node.Listing, error) {
		if n, ok := m.Node().(node.Lister); ok {
			return n.Look(ctx, key)
		}
		reply, err := m.Node().Do(ctx, node.Request{Op: node.OpInspect, Name: key})
		return node.Listing{Name: key, Reply: reply}, err
	})
	for _, err := range errs {
		if errors.Is(err, node.ErrConfig) {
			return nil, err
		}
	}
	s := a.lockState(key, found, errs)
	return &s, a.tooFew(name, start, errs)
}

// tooFew returns an error if too few nodes answered a look at one lock, or at
// all.
func (a *Admin) tooFew(name string, start time.Duration, errs []error) error {
	answered := 0
	for _, err := range errs {
		if err == nil {
			answered++
		}
	}
	need := protocol.Quorum(len(errs))
	if answered >= need {
		return nil
	}
	return &redlatch.QuorumError{Op: node.OpInspect, Name: name, Need: need, Elapsed: a.c.Clock().Uptime() - start,
		Nodes: a.results(make([]node.Reply, len(errs)), errs)}
}

// result is the node's answer as one to a request, which names one holder.
func (n *NodeListing) result() observe.Result {
	return observe.Result{Node: n.Node, Reply: n.Reply}
}

// each returns an answer for each holder. A single holder may be a foreign one,
// about which the reply says more than the listing.
func (n *NodeListing) each() []observe.Result {
	if len(n.Holders) < 2 {
		return []observe.Result{n.result()}
	}
	all := make([]observe.Result, len(n.Holders))
	for i, h := range n.Holders {
		all[i] = n.result()
		r := &all[i].Reply
		r.Value, r.HolderToken, r.Share, r.Left = h.Value, h.Token, h.Share, h.Until.Sub(r.Now)
	}
	return all
}

// lockState combines what the nodes report about one lock. The listing of a
// node with an error does not count.
func (a *Admin) lockState(key string, found []node.Listing, errs []error) LockState {
	nodes := make([]NodeListing, len(found))
	s := LockState{Name: strings.TrimPrefix(key, a.in.Prefix), Nodes: nodes}
	var results []observe.Result
	waiters := map[node.Waiter]int{}
	for i, m := range a.c.Members() {
		n := &nodes[i]
		n.Node, n.Err = m.Name(), errs[i]
		if n.Err != nil {
			continue
		}
		n.Listing = found[i]
		results = append(results, n.each()...)
		if h := holders.Of[redlatch.Holder](n.result()); len(h) > 0 {
			n.Owner, n.Token = h[0].Owner, h[0].Token
		}
		s.Fence, s.Broken = max(s.Fence, n.Reply.Fence), max(s.Broken, n.Broken)
		s.Waiting = max(s.Waiting, n.Waiting)
		for _, w := range n.Waiters {
			w.Slot = 0 // which it would take anyway
			waiters[w]++
		}
	}
	s.Holders = holders.Of[redlatch.Holder](results...)
	together := 0 // they are sorted by how many nodes name them
	for together < len(s.Holders) && s.Holders[together].Nodes >= protocol.Quorum(len(nodes)) {
		together++
	}
	s.Held = together > 0
	slices.SortStableFunc(s.Holders[:together], func(a, b redlatch.Holder) int { return cmp.Compare(a.Token, b.Token) })
	for i := range s.Holders[:together] {
		s.Holders[i].Holders = together
	}
	order := slices.SortedFunc(maps.Keys(waiters), func(a, b node.Waiter) int {
		return cmp.Or(cmp.Compare(a.Ticket, b.Ticket), cmp.Compare(a.Value, b.Value))
	})
	for _, w := range order[:min(len(order), node.MaxListed)] {
		owner, _ := protocol.OwnerOf(w.Value)
		s.Waiters = append(s.Waiters, WaiterState{
			Owner: owner, Since: time.UnixMicro(w.Ticket), Shared: w.Mode == node.Shared, Slots: int(w.Slots), Nodes: waiters[w],
		})
	}
	s.Waiting = max(s.Waiting, len(order))
	a.addCompleted(&s)
	return s
}

// addCompleted combines the completed occurrences that the nodes report.
func (a *Admin) addCompleted(s *LockState) {
	all := map[string]*CompletedState{}
	var since []time.Time
	for _, n := range s.Nodes {
		if n.Err == nil && !n.Since.IsZero() {
			since = append(since, n.Since)
		}
		for _, m := range n.Completed {
			c := all[m.Occurrence]
			if c == nil {
				c = &CompletedState{Occurrence: m.Occurrence}
				all[m.Occurrence] = c
			}
			c.Nodes++
			if until := n.Reply.Now.Add(m.Left); until.After(c.Until) {
				c.Until = until
			}
		}
	}
	for _, m := range all {
		s.Completed = append(s.Completed, *m)
	}
	slices.SortFunc(s.Completed, func(a, b CompletedState) int {
		return cmp.Or(b.Until.Compare(a.Until), cmp.Compare(b.Occurrence, a.Occurrence))
	})
	s.Completed = s.Completed[:min(len(s.Completed), node.MaxListed)]
	if quorum := protocol.Quorum(len(s.Nodes)); len(since) >= quorum {
		slices.SortFunc(since, time.Time.Compare)
		s.CompletedSince = since[quorum-1]
		if oldest := a.c.Clock().Now().Add(-a.in.CompletedRetention); s.CompletedSince.Before(oldest) {
			s.CompletedSince = oldest
		}
	}
}

// State is what is known about a lock, in one word.
type State string

// The states of a lock.
const (
	// StateHeld: a quorum of nodes names the same holder.
	StateHeld State = "held"
	// StateUnknown: too few nodes answer to say.
	StateUnknown State = "unknown"
	// StateSplit: some nodes name a holder, but no quorum names the same.
	StateSplit State = "split"
	// StateWaited: nobody holds it, and somebody waits for it.
	StateWaited State = "waited"
	// StateFree: nobody holds it, and nobody waits for it.
	StateFree State = "free"
)

// State returns the lock's state. With nodes that do not answer, a holder may
// have a majority that is not seen: then it is unknown.
func (s *LockState) State() State {
	silent := len(s.Nodes) - s.Answered()
	switch {
	case s.Held:
		return StateHeld
	case s.Answered() <= len(s.Nodes)/2, s.Naming()+silent > len(s.Nodes)/2:
		return StateUnknown
	case len(s.Holders) > 0:
		return StateSplit
	case s.Waiting > 0:
		return StateWaited
	}
	return StateFree
}

// Answered returns how many nodes answered for the lock.
func (s *LockState) Answered() int {
	n := 0
	for i := range s.Nodes {
		if s.Nodes[i].Err == nil {
			n++
		}
	}
	return n
}

// Naming returns how many nodes name the first holder.
func (s *LockState) Naming() int {
	if len(s.Holders) == 0 {
		return 0
	}
	return s.Holders[0].Nodes
}

// Seen returns the highest token of the lock, for BreakOptions.Seen. If no node
// remembers one, it is the time at which they were asked, by the median of their
// clocks: tokens follow these clocks.
func (s *LockState) Seen() redlatch.Token {
	if s.Fence != 0 {
		return s.Fence
	}
	var clocks []int64
	for _, n := range s.Nodes {
		if n.Err == nil && !n.Reply.Clockless {
			clocks = append(clocks, n.Reply.Now.UnixMicro())
		}
	}
	return redlatch.Token(max(protocol.Median(clocks), 1))
}
