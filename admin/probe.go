package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/risk"
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
	// clocks differ by more than half of it refuse good tokens. Quarantine is how
	// long a node grants nothing after it was marked.
	Window, Quarantine time.Duration
}

// NodePulse is how one node answered a Probe.
type NodePulse struct {
	Node string
	// RoundTrip is how long one request took.
	RoundTrip time.Duration
	// Clock is how far the node's clock is ahead of ours, plus or minus
	// ClockError.
	Clock, ClockError time.Duration
	// Clockless says that the node has no clock, and Clock means nothing.
	Clockless bool
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
		n.RoundTrip, n.Clock, n.Clockless, err = a.ping(ctx, m, key)
		n.ClockError = n.RoundTrip / 2
		return n, err
	})
	states := <-marked
	is := a.c.Parameters()
	p := &Pulse{Nodes: found, Need: protocol.Quorum(len(found)), Guarded: a.c.Guarded(), Window: is.Window, Quarantine: is.Quarantine}
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
func (p *Pulse) ClockSeverity(off time.Duration) risk.Severity { return clockSeverity(off, p.Window) }

// markersWithin reads the markers, if the guard is on. In a cluster that of one
// slot is enough.
func (a *Admin) markersWithin(ctx context.Context, limit time.Duration, key string) []runner.NodeState {
	if !a.c.Guarded() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return a.c.AdoptMarkers(ctx, key)
}

// ListAnswering is List without the nodes that did not answer the probe: they
// are not waited for again, and fail as they did.
func (a *Admin) ListAnswering(ctx context.Context, p *Pulse) (*Survey, error) {
	return a.list(ctx, p)
}

const (
	// samplePace is the time between two round trips: what makes some of them
	// slow often lasts for a moment, which must not decide.
	samplePace = 25 * time.Millisecond
	// sampleLimit limits the measuring of one node.
	sampleLimit = 8 * time.Second
	// sampleBlock is how many round trips are judged by their slowest.
	sampleBlock = 10
)

// measure measures round trips and the node's clock.
func (a *Admin) measure(ctx context.Context, m *runner.Member, n *NodeCheckup, key string, how ExamineOptions) error {
	var times []time.Duration
	began := time.Now()
	for i := range how.Samples {
		if i > 0 && time.Since(began) > sampleLimit {
			break
		}
		trip, ahead, clockless, err := a.ping(ctx, m, key)
		if err != nil {
			return err
		}
		n.Clockless = clockless
		times = append(times, trip)
		// The node read its clock during the round trip, so the shortest round
		// trip gives the smallest error.
		if half := trip / 2; i == 0 || half < n.ClockError {
			n.Clock, n.ClockError = ahead, half
		}
		if how.Progress != nil {
			how.Progress()
		}
		if i+1 < how.Samples && trip < samplePace {
			select {
			case <-time.After(samplePace - trip):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	n.Slow = slow(times)
	slices.Sort(times)
	n.Median, n.P99 = times[len(times)/2], times[(len(times)*99-1)/100]
	return nil
}

// ping returns how long a node takes to answer one request, and how far its
// clock is ahead of ours, plus or minus half of that, unless it has none.
func (a *Admin) ping(ctx context.Context, m *runner.Member, key string) (trip, ahead time.Duration, clockless bool, err error) {
	sent, start := a.c.Clock().Now(), time.Now()
	reply, err := m.Node().Do(ctx, node.Request{Op: node.OpInspect, Name: key})
	now := reply.Now
	var right interface{ Forbidden() bool }
	if named, ok := m.Node().(node.Identifier); ok && errors.As(err, &right) && right.Forbidden() {
		// It answers, but not for this name. The node's own examination says
		// which permission is missing.
		sent, start = a.c.Clock().Now(), time.Now()
		_, now, err = named.Identity(ctx)
	}
	trip = time.Since(start)
	if !now.IsZero() && !reply.Clockless {
		ahead = now.Sub(sent.Add(trip / 2))
	}
	return trip, ahead, reply.Clockless, err
}

// slow returns the upper quartile of the slowest of each sampleBlock times in a
// row.
func slow(times []time.Duration) time.Duration {
	var slowest []time.Duration
	for block := range slices.Chunk(times, sampleBlock) {
		slowest = append(slowest, slices.Max(block))
	}
	slices.Sort(slowest)
	return slowest[(len(slowest)*3-1)/4]
}

// recommend finds times that fit the measurements: a node time limit of ten
// slow round trips, and a TTL in which about ten such limits fit between the
// first try of an extension, after a third of the TTL, and the deadline.
func (a *Admin) recommend(up *Checkup, add func(risk.Finding)) {
	var slowest time.Duration
	for _, n := range up.Nodes {
		if n.Err == nil {
			slowest = max(slowest, n.Slow)
		}
	}
	if slowest == 0 {
		return
	}
	most := a.c.Parameters().MaxTTL
	up.NodeTimeout = roundUp(10 * slowest)
	up.TTL = max(roundUp(40*up.NodeTimeout), min(10*time.Second, most))
	// Some seconds of samples are no reason to go below the defaults.
	up.NodeTimeout = max(up.NodeTimeout, protocol.LimitFor(up.TTL))
	for _, m := range a.c.Members() {
		if slow, ok := m.Node().(node.Slow); ok {
			up.NodeTimeout = max(up.NodeTimeout, slow.TimeLimit())
			up.TTL = max(up.TTL, 2*slow.TimeLimit())
		}
	}
	f := risk.Finding{Check: "times", Found: fmt.Sprintf("slow round trips take %v: suggested are a TTL of %v and a node time limit of %v", slowest.Round(10*time.Microsecond), up.TTL, up.NodeTimeout)}
	if up.TTL > most {
		f.Severity, f.Means = risk.Warning, fmt.Sprintf("the nodes allow a TTL of %v at the most: locks may be lost to slow answers", most)
		f.Do = "bring client and nodes closer together, or allow longer locks: redlatch init --max-ttl"
	}
	add(f)
}

// roundUp rounds up to one leading digit.
func roundUp(d time.Duration) time.Duration {
	unit := time.Millisecond
	for d >= 10*unit {
		unit *= 10
	}
	return (d + unit - 1) / unit * unit
}
