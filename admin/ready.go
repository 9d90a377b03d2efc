package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// Readiness says whether a node is back in service, so that the next node may
// be restarted.
type Readiness struct {
	Node  string
	Ready bool
	// Why says what is missing; empty if the node is ready.
	Why string
	// Left is how long it will take; 0 if that is not known.
	Left time.Duration
	// Err is set if the node did not answer, or refuses this client.
	Err error
}

// readyLimit limits the time of one check of the nodes.
const readyLimit = 5 * time.Second

// Ready asks every node whether it is in service: it answers, is marked for
// this membership, is trusted, has the replicas that it must have, and has been
// trusted long enough for the held locks to be repaired on it. With the guard
// off it is enough that it answers.
//
// The quarantine of a node that restarted begins with the first request that
// notices the restart. Ready sends such a request, provided that a quorum of
// nodes is marked for this membership, or that the node's own marker is.
func (a *Admin) Ready(ctx context.Context) []Readiness {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	ready := make([]Readiness, len(a.c.Members()))
	if !a.c.Guarded() {
		errs := a.c.Each(ctx, readyLimit, func(ctx context.Context, m *runner.Member) error {
			_, err := m.Node().Do(ctx, node.Request{Op: node.OpInspect, Name: a.in.Prefix + "redlatch-ready"})
			return err
		})
		for i, m := range a.c.Members() {
			ready[i] = readiness(runner.NodeState{Node: m.Name(), Trusted: true, Err: errs[i]})
		}
		return ready
	}
	states := a.c.AdoptMarkers(ctx)
	a.beginQuarantine(ctx, states)
	for i, s := range states {
		ready[i] = readiness(s)
	}
	return ready
}

// beginQuarantine marks the nodes that restarted, and updates their states.
func (a *Admin) beginQuarantine(ctx context.Context, states []runner.NodeState) {
	marked := count(states, func(s runner.NodeState) bool { return s.Err == nil && (s.Trusted || s.Left > 0) })
	for i, s := range states {
		if s.Err != nil || s.Trusted || s.Left > 0 {
			continue
		}
		if s.Marked != nil || marked >= protocol.Quorum(len(states)) {
			states[i] = a.c.MarkAfter(ctx, node.Request{Mark: node.MarkWrite}, a.c.Members()[i:i+1], states[i:i+1])[0]
		}
	}
}

// readiness returns what a node lacks to be ready.
func readiness(s runner.NodeState) Readiness {
	r := Readiness{Node: s.Node, Err: s.Err}
	switch {
	case s.Reason == node.ReasonBarred:
		r.Why = "it is barred, since " + node.ReasonText(s.Reason)
	case s.Err != nil:
		r.Why = strings.TrimPrefix(s.Err.Error(), "redlatch: ")
	case s.Left > 0:
		r.Why, r.Left = "it is in quarantine, since "+node.ReasonText(s.Reason), s.Left
	case !s.Trusted:
		r.Why = "it is not marked, and too few others are to confirm the membership: run redlatch init"
	case s.Marked != nil && s.TrustedFor < protocol.Settling(s.Marked.MaxTTL):
		r.Why, r.Left = "it is trusted, and is being given the locks that are held", protocol.Settling(s.Marked.MaxTTL)-s.TrustedFor
	case s.Marked != nil && s.Replicas < s.Marked.Replicas:
		r.Why = fmt.Sprintf("%d of %d required replicas are online", s.Replicas, s.Marked.Replicas)
	default:
		r.Ready = true
	}
	return r
}
