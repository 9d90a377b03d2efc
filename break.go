package redlatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redlatch/redlatch/node"
)

// BreakOptions say what a Break takes away.
type BreakOptions struct {
	// Seen is the highest token that was seen on the lock when the break was
	// decided on: what was granted with a higher one since then is left alone.
	// Defaults to the highest that the nodes remember when Break is called. If
	// Show found no token, give the nodes' time at which it looked, in
	// microseconds: tokens go by the nodes' clocks.
	Seen Token

	// Foreign has a key removed that is no plain lock, such as Redisson's.
	// Defaults to false.
	Foreign bool
}

// BreakReport says what became of a Break.
type BreakReport struct {
	// Token is what the fence was raised to: the next holder's is above it.
	Token Token
	// Nodes has one entry for each node, in the order of the client's list;
	// where the lock is broken, the status is Granted.
	Nodes []NodeResult
}

// Break takes a lock away from whoever has it, and raises its fence, so that
// the next holder's token is above that of the former one. It is for operators,
// when a holder hangs.
//
// The former holder is not stopped. It learns of its loss when it next extends,
// or from a resource that has seen the next holder's token; until then, up to
// its deadline, it believes that it holds the lock, and the next one does too.
//
// The lock is broken if Break returns nil: a quorum of nodes has taken it away.
// It returns a *HeldError if another took the lock since it was seen, or if it
// is in a foreign format; and a *QuorumError if too few nodes answered. Asking
// again is harmless.
func (c *Client) Break(ctx context.Context, name string, opts BreakOptions) (*BreakReport, error) {
	key, err := c.key(name)
	if err != nil {
		return nil, err
	}
	if c.isClosed() {
		return nil, ErrClosed
	}
	if opts.Seen >= node.MaxToken {
		return nil, &ConfigError{Field: "Seen", Value: uint64(opts.Seen), Bound: fmt.Sprintf("below %d", uint64(node.MaxToken))}
	}
	req := node.Request{Op: node.OpBreak, Name: key, Token: opts.Seen + 1, Foreign: opts.Foreign}
	if opts.Seen == 0 {
		// Also a look at whether a quorum can be reached: nothing is broken on
		// a few nodes that had better be left as they are.
		state, err := c.Show(ctx, name)
		if err != nil {
			return nil, err
		}
		req.Token = state.Fence + 1
		if state.Fence == 0 {
			req.Token = state.now()
		}
	}
	c.guard.apply(&req)

	report := &BreakReport{Token: req.Token, Nodes: make([]NodeResult, len(c.members))}
	replies := make([]node.Reply, len(c.members))
	errs := c.each(context.WithoutCancel(ctx), c.opts.NodeTimeout, func(ctx context.Context, m *member) error {
		r := m.call(ctx, req)
		if r.Err == nil {
			replies[m.index] = r.Reply
		}
		return r.Err
	})
	rd := round{tally: tally{nodes: len(c.members)}}
	for i, m := range c.members {
		r := NodeResult{Node: m.name, Err: errs[i]}
		if errs[i] == nil {
			r.Reply = replies[i]
		}
		report.Nodes[i] = r
		rd.results = append(rd.results, r)
		rd.count(r)
	}
	c.roundEnd(ctx, name, req.Op, &rd)
	if rd.won() {
		c.log.Warn("redlatch: lock was broken", "name", name, "token", uint64(req.Token))
		return report, nil
	}
	return report, c.unbroken(ctx, name, req, &rd)
}

// now returns the token for the moment in which the nodes were asked, by the
// median of their clocks.
func (s *LockState) now() Token {
	var clocks []int64
	for _, n := range s.Nodes {
		if n.Err == nil {
			clocks = append(clocks, n.Reply.Now.UnixMicro())
		}
	}
	slices.Sort(clocks)
	return Token(max(clocks[len(clocks)/2], 1))
}

// unbroken says why a break did not come about.
func (c *Client) unbroken(ctx context.Context, name string, req node.Request, rd *round) error {
	if err := c.guard.mismatch(rd); err != nil {
		return err
	}
	for _, r := range rd.results {
		if errors.Is(r.Err, ErrConfig) {
			return r.Err
		}
	}
	if !rd.available() {
		return rd.quorumError(req)
	}
	state, err := c.Show(ctx, name)
	if err == nil && len(state.Holders) > 0 {
		return &HeldError{Name: name, Holders: state.Holders}
	}
	return rd.quorumError(req)
}
