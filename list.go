package redlatch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/progress"
	"github.com/redlatch/redlatch/node"
)

// errCannotList stands for a node that is no Lister.
var errCannotList = errors.New("redlatch: this kind of node cannot list its locks")

// listLimit bounds how long a node is waited for that lists its locks, from one
// sign of progress to the next: the whole takes as long as there are keys.
const listLimit = 5 * time.Second

// LockState is what the nodes say of one lock. They may disagree: while
// contenders split them, when one was away, or after a break that did not reach
// a quorum.
type LockState struct {
	// Name is the lock's name, without the client's prefix.
	Name string
	// Held says that a quorum of nodes names one and the same holder.
	Held bool
	// Holders are those whom the nodes name, the one named by most nodes first.
	Holders []Holder
	// Fence is the highest token that any node remembers of the name: that of
	// the holder, of the last one if there is none, or of one who asked in vain.
	// 0 if none does.
	Fence Token
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
	Token Token
	Err   error
}

// Survey is what the nodes know of all locks.
type Survey struct {
	// Locks are the locks that are held or waited for, by their names.
	Locks []LockState
	// Failed are the nodes that did not answer.
	Failed []NodeResult
}

// List returns the locks that are held or waited for on any node, as far as the
// nodes can list them: on Redis, a lock without a token is not found, nor is
// that of another Redlock client. It returns a *QuorumError, with what was
// found, if too few nodes answered. It takes as long as the nodes have keys to
// walk through; ctx ends it.
func (c *Client) List(ctx context.Context) (*Survey, error) {
	all, start := make([]map[string]node.Listing, len(c.members)), c.clock.Uptime()
	errs := c.each(ctx, 0, func(ctx context.Context, m *member) error {
		n, ok := m.node.(node.Lister)
		if !ok {
			return errCannotList
		}
		found := map[string]node.Listing{}
		err := whileItGoesOn(ctx, max(listLimit, c.opts.NodeTimeout), func(ctx context.Context) error {
			return n.List(ctx, c.opts.Prefix, func(l node.Listing) {
				found[l.Name] = l
				progress.Tell(ctx)
			})
		})
		if err == nil {
			all[m.index] = found
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
	s := &Survey{Failed: c.failed(errs)}
	for key := range keys {
		nodes := make([]NodeListing, len(c.members))
		for i, m := range c.members {
			nodes[i] = NodeListing{Node: m.name, Err: errs[i]}
			if errs[i] != nil {
				continue
			}
			l, known := all[i][key]
			if !known {
				l = node.Listing{Name: key, Reply: node.Reply{Status: node.Absent}}
			}
			nodes[i].Listing = l
		}
		s.Locks = append(s.Locks, c.lockState(key, nodes))
	}
	slices.SortFunc(s.Locks, func(a, b LockState) int { return cmp.Compare(a.Name, b.Name) })
	if len(c.members)-len(s.Failed) < quorumOf(len(c.members)) {
		return s, c.listError("", c.clock.Uptime()-start, errs)
	}
	return s, nil
}

// Show returns what every node says of one lock, also of one without a token or
// of another client. It returns a *QuorumError, with what was found, if too few
// nodes answered.
func (c *Client) Show(ctx context.Context, name string) (*LockState, error) {
	key, err := c.key(name)
	if err != nil {
		return nil, err
	}
	nodes, start := make([]NodeListing, len(c.members)), c.clock.Uptime()
	found := make([]node.Listing, len(c.members))
	errs := c.each(ctx, c.opts.NodeTimeout, func(ctx context.Context, m *member) error {
		var l node.Listing
		var err error
		if n, ok := m.node.(node.Lister); ok {
			l, err = n.Look(ctx, key)
		} else {
			l = node.Listing{Name: key}
			l.Reply, err = m.node.Do(ctx, node.Request{Op: node.OpInspect, Name: key})
		}
		if err == nil {
			found[m.index] = l
		}
		return err
	})
	elapsed := c.clock.Uptime() - start
	for i, m := range c.members {
		nodes[i] = NodeListing{Node: m.name, Err: errs[i]}
		if errs[i] == nil {
			nodes[i].Listing = found[i]
		}
	}
	s := c.lockState(key, nodes)
	for _, err := range errs {
		if errors.Is(err, ErrConfig) {
			return nil, err
		}
	}
	if len(c.members)-len(c.failed(errs)) < quorumOf(len(c.members)) {
		return &s, c.listError(name, elapsed, errs)
	}
	return &s, nil
}

// whileItGoesOn calls f and waits for it for as long as it tells of progress at
// least once per limit. What f does after an error must not be looked at: not
// every driver returns when its context ends.
func whileItGoesOn(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(limit, func() { cancel(ErrNodeTimeout) })
	defer stalled.Stop()
	done := make(chan error, 1)
	go func() { done <- f(progress.With(ctx, func() { stalled.Reset(limit) })) }()
	select {
	case err := <-done:
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// each calls f for every node at once and waits for all of them, no longer than
// limit, if there is one: not every driver returns when its context ends. What f
// does after that must not be looked at.
func (c *Client) each(ctx context.Context, limit time.Duration, f func(ctx context.Context, m *member) error) []error {
	caller := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	var mu sync.Mutex
	errs := make([]error, len(c.members))
	for i := range errs {
		errs[i] = ErrNodeTimeout
	}
	var all sync.WaitGroup
	for i, m := range c.members {
		all.Go(func() {
			err := f(ctx, m)
			if errors.Is(err, context.DeadlineExceeded) && caller.Err() == nil {
				err = ErrNodeTimeout // our own limit, not the caller's
			}
			mu.Lock()
			defer mu.Unlock()
			errs[i] = err
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		// Those who heed their context return about now.
		select {
		case <-done:
		case <-time.After(max(limit/10, 10*time.Millisecond)):
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(errs)
}

// failed returns the nodes that have an error.
func (c *Client) failed(errs []error) []NodeResult {
	var failed []NodeResult
	for i, err := range errs {
		if err != nil {
			failed = append(failed, NodeResult{Node: c.members[i].name, Err: err})
		}
	}
	return failed
}

func (c *Client) listError(name string, elapsed time.Duration, errs []error) error {
	e := &QuorumError{Op: node.OpInspect, Name: name, Need: quorumOf(len(c.members)), Elapsed: elapsed}
	for i, m := range c.members {
		e.Nodes = append(e.Nodes, NodeResult{Node: m.name, Err: errs[i]})
	}
	return e
}

// lockState puts together what the nodes say of one lock.
func (c *Client) lockState(key string, nodes []NodeListing) LockState {
	s := LockState{Name: strings.TrimPrefix(key, c.opts.Prefix), Nodes: nodes}
	var rd round
	waiters := map[node.Waiter]int{}
	for i := range nodes {
		n := &nodes[i]
		if n.Err != nil {
			continue
		}
		r := NodeResult{Node: n.Node, Reply: n.Reply}
		rd.results = append(rd.results, r)
		if h, ok := HolderOf(n.Reply); ok {
			n.Owner, n.Token = h.Owner, h.Token
		}
		s.Fence = max(s.Fence, n.Reply.Fence)
		s.Waiting = max(s.Waiting, n.Waiting)
		for _, w := range n.Waiters {
			waiters[w]++
		}
	}
	s.Holders = rd.holders()
	s.Held = len(s.Holders) > 0 && s.Holders[0].Nodes >= quorumOf(len(nodes))
	order := make([]node.Waiter, 0, len(waiters))
	for w := range waiters {
		order = append(order, w)
	}
	slices.SortFunc(order, func(a, b node.Waiter) int {
		return cmp.Or(cmp.Compare(a.Ticket, b.Ticket), cmp.Compare(a.Value, b.Value))
	})
	for _, w := range order[:min(len(order), node.MaxWaiters)] {
		owner, _ := ownerOf(w.Value)
		s.Waiters = append(s.Waiters, WaiterState{Owner: owner, Since: time.UnixMicro(w.Ticket), Nodes: waiters[w]})
	}
	s.Waiting = max(s.Waiting, len(order))
	return s
}
