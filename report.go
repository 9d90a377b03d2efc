package redlatch

import (
	"context"
	"errors"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
	"github.com/redlatch/redlatch/observe"
)

// reporter makes errors and observer calls of what a claim reports. Its methods
// are called with the claim's mutex held.
type reporter struct {
	c    *Client
	name string          // of the lock, as the caller gave it
	ctx  context.Context // for observers
}

// Name returns the name of the lock.
func (r *reporter) Name() string { return r.name }

// Notify notifies an observe.RoundObserver that a round is over.
func (r *reporter) Notify(cl *runner.Claim, what protocol.News) func() {
	o, ok := r.c.opts.Observer.(observe.RoundObserver)
	if !ok {
		return nil
	}
	ctx, end := r.ctx, observe.RoundEnd{Name: r.name, Won: true}
	switch what {
	case protocol.RoundOver:
		end = r.roundEnd(cl)
	case protocol.YieldOver:
		op, t := cl.Core().Yield()
		end.Op, end.Granted, end.Refused = op, t.Granted, t.Refused
	default:
		return nil
	}
	return func() { o.RoundEnd(ctx, end) }
}

// roundEnd describes the last round for an observer.
func (r *reporter) roundEnd(cl *runner.Claim) observe.RoundEnd {
	round, t := cl.Core().Round()
	end := observe.RoundEnd{
		Op: round.Op, Name: r.name, Won: t.Won() || round.Op == node.OpRelease && t.Freed(),
		Granted: t.Granted, Refused: t.Refused, Failed: t.Failed, Elapsed: round.Elapsed(),
		Nodes: cl.Results(),
	}
	if !end.Won {
		err := quorumError(cl)
		err.Name = r.name
		end.Err = err
	}
	return end
}

// quorumError describes the last round, which had no quorum.
func quorumError(cl *runner.Claim) *QuorumError {
	round, t := cl.Core().Round()
	e := &QuorumError{
		Op: round.Op, Name: cl.Key(), Need: protocol.Quorum(t.Nodes),
		Elapsed: round.Elapsed(), Late: round.Won, Nodes: cl.Results(),
	}
	e.countQuarantined()
	return e
}

// refusal returns why nodes took a lock away: too many have a marker of another
// membership, or what each of them answered.
func (r *reporter) refusal(cl *runner.Claim) error {
	if _, t := cl.Core().Round(); !t.Available() {
		if err := r.c.cluster.Mismatch(cl.Results(), cl.Core().TTL()); err != nil {
			return err
		}
	}
	return quorumError(cl)
}

// noQuorum is the error if a quorum did not answer a request that is no part of a
// claim.
func (c *Client) noQuorum(ctx context.Context, op node.Op, name string, began time.Duration, results []observe.Result) error {
	quorum := &QuorumError{Op: op, Name: name, Need: protocol.Quorum(len(results)), Elapsed: c.cluster.Clock().Uptime() - began, Nodes: results}
	quorum.countQuarantined()
	err := error(quorum)
	for _, r := range results {
		if errors.Is(r.Err, ErrConfig) {
			err = r.Err
		}
	}
	if ctx.Err() != nil {
		err = lockerrors.Ended(ctx, err)
	}
	return err
}
