package admin

import (
	"context"
	"errors"
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
	p := &Pulse{Nodes: make([]NodePulse, len(a.c.Members())), Need: protocol.Quorum(len(a.c.Members())), Guarded: a.c.Guarded()}
	marked := make(chan []runner.NodeState, 1)
	go func() { marked <- a.markersWithin(ctx, limit, key) }()
	seen := make([]NodePulse, len(p.Nodes))
	errs := a.c.ForEachNode(ctx, limit, func(ctx context.Context, m *runner.Member) error {
		found := NodePulse{Node: m.Name()}
		err := a.probe(ctx, m, key, &found)
		if err == nil {
			seen[m.Index()] = found
		}
		return err
	})
	states := <-marked
	for i, m := range a.c.Members() {
		n := &p.Nodes[i]
		if *n = (NodePulse{Node: m.Name(), Err: errs[i]}); errs[i] == nil {
			*n = seen[i]
			p.Answered++
		}
		if p.Guarded {
			n.State = public(states[i : i+1])[0]
		}
	}
	p.Window = a.c.Parameters().Window
	return p
}

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

// probe measures one request to a node.
func (a *Admin) probe(ctx context.Context, m *runner.Member, key string, n *NodePulse) error {
	sent, start := a.c.Clock().Now(), time.Now()
	reply, err := m.Node().Do(ctx, node.Request{Op: node.OpInspect, Name: key})
	now := reply.Now
	var right interface{ Forbidden() bool }
	if named, ok := m.Node().(node.Identifier); ok && errors.As(err, &right) && right.Forbidden() {
		// It answers, but not for this name.
		sent, start = a.c.Clock().Now(), time.Now()
		_, now, err = named.Identity(ctx)
	}
	if err != nil {
		return err
	}
	n.RoundTrip = time.Since(start)
	n.ClockError = n.RoundTrip / 2
	if !now.IsZero() {
		n.Clock = now.Sub(sent.Add(n.ClockError))
	}
	return nil
}

// ListAnswering is List without the nodes that did not answer the probe: they
// are not waited for again, and fail as they did.
func (a *Admin) ListAnswering(ctx context.Context, p *Pulse) (*Survey, error) {
	silent := make([]error, len(a.c.Members()))
	for i := range p.Nodes[:min(len(p.Nodes), len(silent))] {
		silent[i] = p.Nodes[i].Err
	}
	return a.list(ctx, silent)
}
