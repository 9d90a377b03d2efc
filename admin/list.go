package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/inside"
	"github.com/redlatch/redlatch/internal/progress"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// errCannotList stands for a node that is no Lister.
var errCannotList = errors.New("redlatch: this kind of node cannot list its locks")

// LockState is what the nodes say of one lock. They may disagree: while
// contenders split them, when one was away, or after a break that did not reach
// a quorum.
type LockState struct {
	// Name is the lock's name, without the client's prefix.
	Name string
	// Held says that a quorum of nodes names one and the same holder.
	Held bool
	// Holders are those whom the nodes name, the one named by most nodes first.
	Holders []redlatch.Holder
	// Fence is the highest token that any node remembers of the name: that of
	// the holder, of the last one if there is none, or of one who asked in vain.
	// 0 if none does.
	Fence redlatch.Token
	// Waiting is how many wait: the most that any node knows of.
	Waiting int
	// Waiters are the first of them, in the order of their tickets. Only Show
	// fills them in.
	Waiters []WaiterState
	// Nodes has one entry for each node, in the order of the client's list.
	Nodes []NodeListing
}

// WaiterState is somebody who waits for a lock.
type WaiterState struct {
	// Owner is host/pid/label.
	Owner string
	// Since is when it came, by the nodes' clocks.
	Since time.Time
	// Nodes is the number of nodes in whose queue it stands.
	Nodes int
}

// NodeListing is what one node says of a lock, or why it says nothing.
type NodeListing struct {
	Node string
	node.Listing
	// Owner is who has the lock there, as in a Holder; empty for nobody.
	Owner string
	// Token is the token of whoever that is; 0 for none.
	Token redlatch.Token
	Err   error
}

// Survey is what the nodes know of all locks.
type Survey struct {
	// Locks are the locks that are held or waited for, by their names.
	Locks []LockState
	// Failed are the nodes that did not answer.
	Failed []redlatch.NodeResult
}

// List returns the locks that are held or waited for on any node, as far as the
// nodes can list them: on Redis, a lock without a token is not found, nor is
// that of another Redlock client. It returns a *redlatch.QuorumError, with what was
// found, if too few nodes answered. It takes as long as the nodes have keys to
// walk through; ctx ends it.
func (a *Admin) List(ctx context.Context) (*Survey, error) {
	all, start := make([]map[string]node.Listing, len(a.c.Members())), a.c.Clock().Uptime()
	errs := a.c.Each(ctx, 0, func(ctx context.Context, m *runner.Member) error {
		n, ok := m.Node().(node.Lister)
		if !ok {
			return errCannotList
		}
		found := map[string]node.Listing{}
		err := runner.WhileItGoesOn(ctx, max(runner.WalkLimit, a.c.NodeTimeout()), func(ctx context.Context) error {
			return n.List(ctx, a.in.Prefix, func(l node.Listing) {
				found[l.Name] = l
				progress.Tell(ctx)
			})
		})
		if err == nil {
			all[m.Index()] = found
		}
		return err
	})
	keys := map[string]bool{}
	for i := range all {
		if errs[i] != nil {
			continue // it may still be writing
		}
		for key := range all[i] {
			keys[key] = true
		}
	}
	s := &Survey{Failed: a.failed(errs)}
	for key := range keys {
		nodes := make([]NodeListing, len(a.c.Members()))
		for i, m := range a.c.Members() {
			nodes[i] = NodeListing{Node: m.Name(), Err: errs[i]}
			if errs[i] != nil {
				continue
			}
			l, known := all[i][key]
			if !known {
				l = node.Listing{Name: key, Reply: node.Reply{Status: node.Absent}}
			}
			nodes[i].Listing = l
		}
		s.Locks = append(s.Locks, a.lockState(key, nodes))
	}
	slices.SortFunc(s.Locks, func(a, b LockState) int { return cmp.Compare(a.Name, b.Name) })
	if len(a.c.Members())-len(s.Failed) < protocol.Quorum(len(a.c.Members())) {
		return s, a.listError("", a.c.Clock().Uptime()-start, errs)
	}
	return s, nil
}

// Show returns what every node says of one lock, also of one without a token or
// of another client. It returns a *redlatch.QuorumError, with what was found, if too few
// nodes answered.
func (a *Admin) Show(ctx context.Context, name string) (*LockState, error) {
	key, err := a.in.Key(name)
	if err != nil {
		return nil, err
	}
	nodes, start := make([]NodeListing, len(a.c.Members())), a.c.Clock().Uptime()
	found := make([]node.Listing, len(a.c.Members()))
	errs := a.c.Each(ctx, a.c.NodeTimeout(), func(ctx context.Context, m *runner.Member) error {
		var l node.Listing
		var err error
		if n, ok := m.Node().(node.Lister); ok {
			l, err = n.Look(ctx, key)
		} else {
			l = node.Listing{Name: key}
			l.Reply, err = m.Node().Do(ctx, node.Request{Op: node.OpInspect, Name: key})
		}
		if err == nil {
			found[m.Index()] = l
		}
		return err
	})
	elapsed := a.c.Clock().Uptime() - start
	for i, m := range a.c.Members() {
		nodes[i] = NodeListing{Node: m.Name(), Err: errs[i]}
		if errs[i] == nil {
			nodes[i].Listing = found[i]
		}
	}
	s := a.lockState(key, nodes)
	for _, err := range errs {
		if errors.Is(err, node.ErrConfig) {
			return nil, err
		}
	}
	if len(a.c.Members())-len(a.failed(errs)) < protocol.Quorum(len(a.c.Members())) {
		return &s, a.listError(name, elapsed, errs)
	}
	return &s, nil
}

// HoldersOf returns those whom nodes name as having a lock, by their answers to one
// request, the one named by most nodes first.
func HoldersOf(results ...redlatch.NodeResult) []redlatch.Holder {
	return inside.Holders(results).([]redlatch.Holder)
}

// failed returns the nodes that have an error.
func (a *Admin) failed(errs []error) []redlatch.NodeResult {
	var failed []redlatch.NodeResult
	for i, err := range errs {
		if err != nil {
			failed = append(failed, redlatch.NodeResult{Node: a.c.Members()[i].Name(), Err: err})
		}
	}
	return failed
}

func (a *Admin) listError(name string, elapsed time.Duration, errs []error) error {
	e := &redlatch.QuorumError{Op: node.OpInspect, Name: name, Need: protocol.Quorum(len(a.c.Members())), Elapsed: elapsed}
	for i, m := range a.c.Members() {
		e.Nodes = append(e.Nodes, redlatch.NodeResult{Node: m.Name(), Err: errs[i]})
	}
	return e
}

// lockState puts together what the nodes say of one lock.
func (a *Admin) lockState(key string, nodes []NodeListing) LockState {
	s := LockState{Name: strings.TrimPrefix(key, a.in.Prefix), Nodes: nodes}
	var results []redlatch.NodeResult
	waiters := map[node.Waiter]int{}
	for i := range nodes {
		n := &nodes[i]
		if n.Err != nil {
			continue
		}
		r := redlatch.NodeResult{Node: n.Node, Reply: n.Reply}
		results = append(results, r)
		if h := HoldersOf(r); len(h) > 0 {
			n.Owner, n.Token = h[0].Owner, h[0].Token
		}
		s.Fence = max(s.Fence, n.Reply.Fence)
		s.Waiting = max(s.Waiting, n.Waiting)
		for _, w := range n.Waiters {
			waiters[w]++
		}
	}
	s.Holders = HoldersOf(results...)
	s.Held = len(s.Holders) > 0 && s.Holders[0].Nodes >= protocol.Quorum(len(nodes))
	order := make([]node.Waiter, 0, len(waiters))
	for w := range waiters {
		order = append(order, w)
	}
	slices.SortFunc(order, func(a, b node.Waiter) int {
		return cmp.Or(cmp.Compare(a.Ticket, b.Ticket), cmp.Compare(a.Value, b.Value))
	})
	for _, w := range order[:min(len(order), node.MaxWaiters)] {
		owner, _ := protocol.OwnerOf(w.Value)
		s.Waiters = append(s.Waiters, WaiterState{Owner: owner, Since: time.UnixMicro(w.Ticket), Nodes: waiters[w]})
	}
	s.Waiting = max(s.Waiting, len(order))
	return s
}
