package redlatch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// job is a call of Once, or of Completed: protocol.Job decides, and this asks the
// nodes and says what came of it.
type job struct {
	protocol.Job
	c    *Client
	name string
}

// handle has the job handle what happened, sends what it asks, and returns its state
// when no answer is awaited any more. The error is that of a job which ended without
// an answer, or which is not to run because ctx has ended.
func (j *job) handle(ctx context.Context, what protocol.JobEventKind) (protocol.JobState, error) {
	cluster := j.c.cluster
	if cluster.Guarded() {
		j.Request.Guard = cluster.Parameters()
	}
	var op node.Op
	var began time.Duration
	var results []observe.Result
	for asks := j.Handle(protocol.JobEvent{Kind: what}); len(asks) > 0; {
		round := j.Round
		op, began = asks[0].Request.Op, cluster.Clock().Uptime()
		results = cluster.Records(ctx, asks, func(a protocol.Ask, r *node.RecordsReply) bool {
			e := protocol.JobEvent{Kind: protocol.Answered, Ask: a, Reply: r}
			for _, m := range cluster.Members() {
				if m.Failing() {
					e.Away |= protocol.Of(m.Index())
				}
			}
			asks = j.Handle(e)
			return j.Round != round
		})
		if j.Round == round {
			asks = j.Handle(protocol.JobEvent{Kind: protocol.Over})
		}
	}
	switch j.State {
	case protocol.TooFew:
		return j.State, j.c.noQuorum(ctx, op, j.name, began, results)
	case protocol.Unknown:
		return j.State, j.unknown(results)
	case protocol.Runs:
		return j.State, ctx.Err()
	}
	return j.State, nil
}

// unknown is the error if too few nodes are sure that the occurrence is not
// completed, and others do not answer.
func (j *job) unknown(results []observe.Result) error {
	var away, lost, why []string
	for i, r := range results {
		switch {
		case !j.Found.Heard.Has(i):
			away, why = append(away, r.Node), append(why, r.String())
		case !j.Found.Kept.Has(i):
			lost = append(lost, r.Node)
		}
	}
	e := &QuorumError{Op: node.OpCheck, Name: j.name, Need: protocol.Need(j.Nodes), Nodes: results}
	e.text = fmt.Sprintf("redlatch: unknown whether %q of %q is completed: %d of %d nodes must have kept their records, and %s may have lost them; run it again when %s answers (%s)",
		j.Request.Occurrence, j.name, e.Need, j.Nodes, strings.Join(lost, ", "), strings.Join(away, ", "), strings.Join(why, "; "))
	e.countQuarantined()
	return e
}
