package admin

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
)

// Pulse is how the nodes answered a Probe.
type Pulse struct {
	// Nodes has one entry for each node, in the order of the client's nodes.
	Nodes []NodePulse
	// Answered is how many nodes answered. Need is the quorum.
	Answered, Need int
	// Guarded says that nodes are quarantined after a restart. Without it the
	// entries have no State.
	Guarded bool
	// Window is how far a token may differ from a node's clock. Nodes whose
	// clocks differ by more than half of it refuse good tokens.
	Window time.Duration
}

// NodePulse is how one node answered a Probe.
type NodePulse struct {
	Node string
	// RoundTrip is how long one request took.
	RoundTrip time.Duration
	// Clock is how far the node's clock is ahead of ours, plus or minus
	// ClockError.
	Clock, ClockError time.Duration
	// State is what its marker says, if Pulse.Guarded is set.
	State NodeState
	// Err is set if the node did not answer.
	Err error
}

// Quarantined reports whether the node is in quarantine.
func (p *NodePulse) Quarantined() bool { return p.Err == nil && p.State.Err == nil && p.State.Left > 0 }

// Probe asks every node with two small requests how long it takes to answer,
// what its clock shows, and what its marker says. It is cheap enough to be
// called every second, and takes no longer than the node time limit. It changes
// nothing: unlike Ready it does not begin the quarantine of a node that
// restarted.
func (a *Admin) Probe(ctx context.Context) *Pulse {
	limit, key := a.c.NodeTimeout(), a.in.Prefix+"redlatch-ready"
	marked := make(chan []runner.NodeState, 1)
	go func() { marked <- a.markersWithin(ctx, limit, key) }()
	found, errs := ask(ctx, a.c, limit, func(ctx context.Context, m *runner.Member) (n NodePulse, err error) {
		n.RoundTrip, n.Clock, err = a.ping(ctx, m, key)
		n.ClockError = n.RoundTrip / 2
		return n, err
	})
	states := <-marked
	p := &Pulse{Nodes: found, Need: protocol.Quorum(len(found)), Guarded: a.c.Guarded(), Window: a.c.Parameters().Window}
	for i, m := range a.c.Members() {
		n := &p.Nodes[i]
		n.Node, n.Err = m.Name(), errs[i]
		if n.Err == nil {
			p.Answered++
		}
		if p.Guarded {
			n.State = public(states[i : i+1])[0]
		}
	}
	return p
}

// ClockSeverity says how bad it is that a clock differs from the others' by this
// much.
func (p *Pulse) ClockSeverity(off time.Duration) node.Severity { return clockSeverity(off, p.Window) }

// markersWithin reads the markers, if the guard is on. In a cluster that of one
// slot is enough.
func (a *Admin) markersWithin(ctx context.Context, limit time.Duration, key string) []runner.NodeState {
	if !a.c.Guarded() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return a.c.AdoptMarkersFor(ctx, key)
}

// ListAnswering is List without the nodes that did not answer the probe: they
// are not waited for again, and fail as they did.
func (a *Admin) ListAnswering(ctx context.Context, p *Pulse) (*Survey, error) {
	return a.list(ctx, p)
}
