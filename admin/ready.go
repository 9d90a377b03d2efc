package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/lockerrors"
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

// readyLimit limits the time of one check of the nodes. A node that does not
// answer takes half of it.
const readyLimit = 10 * time.Second

// Ready asks every node whether it is in service: it answers, is marked for
// this membership, is trusted, has the replicas that it must have, and has been
// trusted long enough for the held locks to be repaired on it. With the guard
// off it is enough that it answers.
//
// The quarantine of a node that restarted, or is new, begins with the first
// request that notices that. Ready marks such nodes, by the same rule as Init.
func (a *Admin) Ready(ctx context.Context) []Readiness {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	ready := make([]Readiness, len(a.c.Members()))
	if !a.c.Guarded() {
		errs := a.c.ForEachNode(ctx, readyLimit, func(ctx context.Context, m *runner.Member) error {
			_, err := m.Node().Do(ctx, node.Request{Op: node.OpInspect, Name: a.in.Prefix + "redlatch-ready"})
			return err
		})
		for i, m := range a.c.Members() {
			ready[i] = readiness(runner.NodeState{Node: m.Name(), MarkerState: protocol.MarkerState{Trusted: true}, Err: errs[i]})
		}
		return ready
	}
	for i, s := range a.c.MarkMissing(ctx, a.c.AdoptMarkers(ctx, "")) {
		ready[i] = readiness(s)
	}
	return ready
}

// readiness returns what a node lacks to be ready.
func readiness(s runner.NodeState) Readiness {
	r := Readiness{Node: s.Node, Err: s.Err}
	switch {
	case s.Reason == node.ReasonBarred:
		r.Why = "barred: " + lockerrors.Reason(s.Reason)
	case s.Err != nil:
		r.Why = lockerrors.Text(s.Err)
	case s.Left > 0:
		r.Why, r.Left = "quarantined: "+lockerrors.Reason(s.Reason), s.Left
	case !s.Trusted:
		r.Why = "not marked, since too few nodes confirm the membership: redlatch init says what is missing"
	case s.Marked != nil && s.TrustedFor < protocol.Settling(s.Marked.MaxTTL):
		r.Why, r.Left = "trusted; the held locks are being copied to it", protocol.Settling(s.Marked.MaxTTL)-s.TrustedFor
	case s.Marked != nil && s.Replicas < s.Marked.Replicas:
		r.Why = fmt.Sprintf("%d of %d required replicas are online", s.Replicas, s.Marked.Replicas)
	default:
		r.Ready = true
	}
	return r
}
