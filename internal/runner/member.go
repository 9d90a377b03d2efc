package runner

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// Member is a node as a client knows it: what its answers have shown so far.
type Member struct {
	node    node.Node
	name    string
	starter node.Starter // nil if the node is none
	cluster *Cluster
	index   int

	// failing is set while the last call failed, and late if it failed by
	// reaching the time limit. probes counts the calls that try such a node
	// again, and probed is when, on the client's clock, the last of them began.
	failing atomic.Bool
	late    atomic.Bool
	probes  atomic.Int32
	probed  atomic.Int64

	// inflight counts the calls in flight; waitingSince is when, on the
	// client's clock, the node last answered one or was first asked.
	inflight     atomic.Int32
	waitingSince atomic.Int64

	// offset is how far the node's clock is ahead of ours, in nanoseconds,
	// and offsetKnown whether it has been seen.
	offset      atomic.Int64
	offsetKnown atomic.Bool
	epochAt     atomic.Int64 // what its clock showed at Uptime 0, in nanoseconds
	wrongClock  atomic.Bool  // and this has been logged
	clockless   atomic.Bool  // it has no clock

	// quarantined is what is known of the node's quarantine; nil if it is in
	// none.
	quarantined atomic.Pointer[quarantine]

	// epoch is the highest epoch that is known of the node's marker, and shown
	// what that said.
	epoch atomic.Uint64
	shown atomic.Pointer[protocol.Shown]

	// identified is set once it is known that no other node is the same server.
	identified atomic.Bool

	// asking is set once it was logged that the node cannot notify waiters.
	asking atomic.Bool

	janitor janitor
}

// NewMember returns a Member for a node that is not in the membership, so that
// it can be marked like one that is.
func (c *Cluster) NewMember(n node.Node) *Member {
	return &Member{node: n, name: n.String(), cluster: c}
}

// Name returns the node's name.
func (m *Member) Name() string { return m.name }

// Index returns its index among the client's nodes.
func (m *Member) Index() int { return m.index }

// Failing reports whether the last call of the node failed.
func (m *Member) Failing() bool { return m.failing.Load() }

// Node returns the node itself.
func (m *Member) Node() node.Node { return m.node }

// Call asks the node, and records what the answer shows about it.
func (m *Member) Call(ctx context.Context, req node.Request) observe.Result {
	return m.call(ctx, req, nil)
}

// call is Call, after the release of an abandoned claim of ours that is known to
// be in the way, if there is one.
func (m *Member) call(ctx context.Context, req node.Request, release *node.Request) observe.Result {
	m.begin()
	sent := m.cluster.clock.Uptime()
	reply, err := m.ask(ctx, req, release)
	r := m.end(req.Op, req.Name, reply, err, ctx.Err() != nil, ctx.Err() == context.Canceled)
	m.observeEnd(req.Op, r, m.cluster.clock.Uptime()-sent)
	return r
}

// begin notes that the node is asked.
func (m *Member) begin() {
	if m.inflight.Add(1) == 1 {
		m.waitingSince.Store(int64(m.cluster.clock.Uptime()))
	}
}

// end records what an answer shows about the node; late if the time limit has
// passed, left if the caller did not wait for it.
func (m *Member) end(op node.Op, name string, reply node.Reply, err error, late, left bool) observe.Result {
	m.waitingSince.Store(int64(m.cluster.clock.Uptime()))
	m.inflight.Add(-1)
	changed := false
	if !errors.Is(err, node.ErrBusy) && !errors.Is(err, node.ErrContended) && !(left && err != nil) { // which say nothing about the node
		changed = m.failing.Swap(err != nil) != (err != nil)
		m.late.Store(timedOut(err) || err != nil && late)
	}
	if timedOut(err) {
		// The node's context, not the caller's: errors.Is must not confuse the
		// two.
		err = &timeoutError{text: err.Error(), unsent: errors.Is(err, node.ErrUnsent), contended: errors.Is(err, node.ErrContended)}
	}
	if err == nil {
		changed = m.noteQuarantine(op, reply) || changed
		m.cluster.guard.noteService(op, reply.Status)
		m.janitor.answered()
		g := &m.cluster.guard
		g.noteOther(reply.Guard)
		if protocol.NeedsMarking(g.parameters(), &reply, m.noteEpochs(&reply.Marker), g.returns.Load() > 0) {
			m.cluster.marking.start(m.cluster, name)
		}
	}
	if changed {
		m.changed()
	}
	return observe.Result{Node: m.name, Reply: reply, Err: err}
}

// timedOut reports whether a call had no answer in time, in any driver's form.
func timedOut(err error) bool {
	if err == nil {
		return false
	}
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.As(err, &network) && network.Timeout()
}

// timeoutError is an ErrNodeTimeout with the node's own text, which says if
// nothing was sent.
type timeoutError struct {
	text   string
	unsent bool
	// contended says that the node answered, and others wrote before each try.
	contended bool
}

func (e *timeoutError) Error() string { return ErrNodeTimeout.Error() + ": " + e.text }

func (e *timeoutError) Is(target error) bool {
	return target == ErrNodeTimeout || target == node.ErrUnsent && e.unsent || target == node.ErrContended && e.contended
}

func (m *Member) ask(ctx context.Context, req node.Request, release *node.Request) (node.Reply, error) {
	if err := m.identify(ctx); err != nil {
		return node.Reply{}, err
	}
	if release == nil {
		reply, err := m.do(ctx, req)
		inTheWay, ours := m.cluster.abandoned.inTheWay(req.Op, reply, err)
		if !ours {
			return reply, err
		}
		release = &inTheWay
	}
	if _, err := m.do(ctx, *release); err != nil {
		return node.Reply{}, repeated(err)
	}
	reply, err := m.do(ctx, req)
	reply.Again = true // the first answer, which nobody sees, may have shown a place
	return reply, repeated(err)
}

// do sends one request, and learns from the reply how far the node's clock is
// ahead of ours.
func (m *Member) do(ctx context.Context, req node.Request) (node.Reply, error) {
	c := m.cluster
	sent := c.clock.Now()
	clock := c.nodesClock()
	req.Epoch, req.Clock = m.epoch.Load(), protocol.ClockFor(&req, clock, c.clockKnown(), c.noClocks())
	reply, err := m.node.Do(ctx, req)
	if err == nil {
		if m.answered(sent, reply.Now, reply.Clockless); reply.Clockless && !req.Clock.Equal(clock) {
			reply.Now = c.nodesClock()
		}
	}
	return reply, err
}

// noteWakes logs once that a node cannot notify waiters, and why, and once when
// it can again.
func (m *Member) noteWakes(err error) {
	if err != nil && !m.asking.Swap(true) {
		m.cluster.say(slog.LevelWarn, "redlatch: node cannot send notifications; waiters poll", "node", m.name, "err", err)
	} else if err == nil && m.asking.Swap(false) {
		m.cluster.say(slog.LevelInfo, "redlatch: notifications restored", "node", m.name)
	}
}

// mayProbe reports whether a call may try a node that does not answer.
func (m *Member) mayProbe(now time.Duration) bool {
	return protocol.MayProbe(int(m.probes.Load()), now-time.Duration(m.probed.Load()), m.cluster.patience())
}

// probe records that a call tries a node that does not answer. probeEnd follows
// it.
func (m *Member) probe() {
	m.probes.Add(1)
	m.probed.Store(int64(m.cluster.clock.Uptime()))
}

func (m *Member) probeEnd() { m.probes.Add(-1) }

// suspects returns the nodes that do not answer while a quorum of others does.
func (c *Cluster) suspects(now time.Duration) protocol.Set {
	var nodes [protocol.MaxNodes]protocol.Health
	for i, m := range c.members {
		nodes[i] = protocol.Health{
			Failing: m.failing.Load(), Late: m.late.Load(),
			InFlight: m.inflight.Load() > 0, Since: time.Duration(m.waitingSince.Load()),
		}
	}
	return protocol.Suspects(nodes[:len(c.members)], now, c.patience())
}
