package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// BreakOptions are the settings of a Break. The zero value works.
type BreakOptions struct {
	// Seen is the highest token that was seen on the lock when the break was
	// decided. A lock that was granted with a higher token since then is not
	// broken. LockState.Seen returns it. Defaults to that of a Show when Break is
	// called.
	Seen redlatch.Token

	// Foreign also removes a key that is no plain string, such as one of
	// Redisson. Defaults to false.
	Foreign bool
}

// BreakReport is the result of a Break.
type BreakReport struct {
	// Token is the new fence: the next holder's token is above it.
	Token redlatch.Token
	// Nodes has one entry for each node, in the order of the client's nodes.
	// The status is Granted where the lock is broken.
	Nodes []observe.Result
}

// Break takes a lock away from its holder and raises its fence, so that the
// next holder's token is above the former holder's. A lock with several readers
// or slots is taken away from all of them. It is for operators, when a holder
// hangs.
//
// The former holder is not stopped. It notices the loss at its next extension,
// or when a resource that has seen the next holder's token refuses it. Until
// then, and up to its deadline, both believe that they hold the lock.
//
// The lock is broken if Break returns nil: a quorum of nodes has freed it, and
// gives it to the former holder no more. If only a minority has, the holder keeps
// the lock on the others.
// Break returns a *redlatch.HeldError if another client took the lock after it
// was seen, or if the lock is in a foreign format, and a *redlatch.QuorumError
// if too few nodes answered. Repeating it is harmless.
func (a *Admin) Break(ctx context.Context, name string, opts *BreakOptions) (*BreakReport, error) {
	o := optional.Value(opts)
	key, err := a.in.Key(name)
	if err != nil {
		return nil, err
	}
	if a.c.Closing() {
		return nil, node.ErrClosed
	}
	if o.Seen >= node.MaxToken {
		return nil, &node.ConfigError{Field: "Seen", Value: uint64(o.Seen), Bound: fmt.Sprintf("below %d", uint64(node.MaxToken))}
	}
	if o.Seen == 0 {
		// This also checks that a quorum can be reached: a break on a minority
		// of nodes would only do harm.
		state, err := a.Show(ctx, name)
		if err != nil {
			return nil, err
		}
		o.Seen = state.Seen()
	}
	req := node.Request{Op: node.OpBreak, Name: key, Fencing: node.Fencing{Token: o.Seen + 1}, Foreign: o.Foreign}
	a.c.Apply(&req)

	start := a.c.Clock().Uptime()
	replies, errs := ask(context.WithoutCancel(ctx), a.c, a.c.NodeTimeout(), func(ctx context.Context, m *runner.Member) (node.Reply, error) {
		r := m.Call(ctx, req)
		return r.Reply, r.Err
	})
	report := &BreakReport{Token: req.Token, Nodes: a.results(replies, errs)}
	t := tallyOf(report.Nodes)
	failed := &redlatch.QuorumError{Op: req.Op, Name: name, Need: protocol.Quorum(t.Nodes), Elapsed: a.c.Clock().Uptime() - start, Nodes: report.Nodes}
	if o, ok := a.in.Observer.(observe.RoundObserver); ok {
		end := observe.RoundEnd{Op: req.Op, Name: name, Won: t.Won(), Granted: t.Granted, Refused: t.Refused, Failed: t.Failed, Elapsed: failed.Elapsed, Nodes: report.Nodes}
		if !end.Won {
			end.Err = failed
		}
		o.RoundEnd(ctx, end)
	}
	if t.Won() {
		a.c.Log().Warn("redlatch: lock was broken", "name", name, "token", req.Token.String())
		return report, nil
	}
	return report, a.unbroken(ctx, name, t, failed)
}

// unbroken returns why a break failed.
func (a *Admin) unbroken(ctx context.Context, name string, t protocol.Tally, failed *redlatch.QuorumError) error {
	if err := a.c.Mismatch(failed.Nodes, 0); err != nil {
		return err
	}
	for _, r := range failed.Nodes {
		if errors.Is(r.Err, node.ErrConfig) {
			return r.Err
		}
	}
	if !t.Available() {
		return failed
	}
	state, err := a.Show(ctx, name)
	if err == nil && len(state.Holders) > 0 {
		return &redlatch.HeldError{Name: name, Holders: state.Holders}
	}
	return failed
}

// tallyOf counts the nodes' answers to an operator's request.
func tallyOf(results []observe.Result) protocol.Tally {
	t := protocol.Tally{Nodes: len(results)}
	for _, r := range results {
		switch {
		case r.Err != nil:
			t.Failed++
		case r.Reply.Status == node.Granted:
			t.Granted++
		default:
			t.Refused++
			if r.Reply.Status == node.Quarantined || r.Reply.Status == node.Misconfigured {
				t.Unfit++
			}
		}
	}
	return t
}
