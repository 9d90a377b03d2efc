package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
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
	shown atomic.Pointer[shown]

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
	r := m.end(req.Op, req.Name, reply, err, ctx.Err() != nil)
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
// passed.
func (m *Member) end(op node.Op, name string, reply node.Reply, err error, late bool) observe.Result {
	m.waitingSince.Store(int64(m.cluster.clock.Uptime()))
	m.inflight.Add(-1)
	changed := false
	if !errors.Is(err, node.ErrBusy) && !errors.Is(err, node.ErrContended) { // which say nothing about the node
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
		other := reply.Status == node.Misconfigured && g.noteOther(reply.Guard)
		// When another membership was seen, a grant may show that ours is back.
		other = g.on && (other || reply.Status == node.Granted && g.returns.Load() > 0)
		if m.noteEpochs(&reply.Marker) || reply.NeedsMark || other || protocol.MissedChange(*g.parameters(), &reply) {
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
	req.Epoch, req.Clock = m.epoch.Load(), clock
	switch token := time.UnixMicro(int64(req.Token)); {
	case !c.clockKnown():
		req.Clock = unknownClock
	case c.noClocks() && req.Op != node.OpRepair && token.After(clock):
		// It is not ahead. The time limit of a repair is by our clock.
		req.Clock = token
	}
	reply, err := m.node.Do(ctx, req)
	if err == nil {
		if m.answered(sent, reply.Now, reply.Clockless); reply.Clockless && !req.Clock.Equal(clock) {
			reply.Now = c.nodesClock()
		}
	}
	return reply, err
}

// answered records the clock of a node that has answered, or that it has none.
func (m *Member) answered(sent, now time.Time, clockless bool) {
	if clockless {
		m.clockless.Store(true)
		return
	}
	m.showed(sent, m.cluster.clock.Now(), now)
}

// unknownClock is for a node without a clock while no other node has shown its own: every
// token is ahead of it. Our clock may be hours ahead, and so would the fence be for hours,
// above all tokens that the other nodes accept.
var unknownClock = time.UnixMicro(0).UTC()

// showed records the node's clock during a round trip from sent to arrived.
func (m *Member) showed(sent, arrived, now time.Time) {
	if now.IsZero() {
		return
	}
	m.epochAt.Store(now.UnixNano() - int64(m.cluster.clock.Uptime()))
	known := time.Duration(m.offset.Load())
	offset := protocol.Offset(known, now.Sub(arrived), now.Sub(sent))
	if offset != known || !m.offsetKnown.Load() {
		m.offset.Store(int64(offset))
		m.offsetKnown.Store(true)
		m.cluster.checkClocks()
	}
}

// checkClocks logs the nodes whose clock differs from the others'. Tokens are
// proposed by the median, so such a node will soon refuse them as outside its
// window.
func (c *Cluster) checkClocks() {
	var known protocol.Set
	var buf [protocol.MaxNodes]time.Duration
	offsets := buf[:len(c.members)]
	for i, m := range c.members {
		if offsets[i] = time.Duration(m.offset.Load()); m.offsetKnown.Load() {
			known |= protocol.Of(i)
		}
	}
	all, judged := protocol.WrongClocks(offsets, known, c.guard.parameters().Window)
	if !judged {
		return
	}
	for i, m := range c.members {
		if !known.Has(i) {
			continue
		}
		wrong, off := all.Has(i), offsets[i]-c.clockOffset()
		if wrong && !m.wrongClock.Swap(true) {
			c.say(slog.LevelWarn, "redlatch: node's clock differs from the majority", "node", m.name, "ahead", off.Round(time.Millisecond))
			m.changed()
		} else if !wrong && m.wrongClock.Swap(false) {
			c.say(slog.LevelInfo, "redlatch: node's clock is right again", "node", m.name)
			m.changed()
		}
	}
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

// clockKnown reports whether any node has shown its clock, or a quorum has none.
func (c *Cluster) clockKnown() bool {
	shown, clockless := c.clocks()
	return shown || clockless >= protocol.Quorum(len(c.members))
}

// noClocks reports whether a quorum of nodes has no clock, and none has shown one.
func (c *Cluster) noClocks() bool {
	shown, clockless := c.clocks()
	return !shown && clockless >= protocol.Quorum(len(c.members))
}

// clocks reports whether any node has shown its clock, and if not how many have none.
func (c *Cluster) clocks() (shown bool, clockless int) {
	for _, m := range c.members {
		if m.offsetKnown.Load() {
			return true, 0
		}
		if m.clockless.Load() {
			clockless++
		}
	}
	return false, clockless
}

// clockOffset returns how far the nodes' clocks are ahead of ours. It is the
// median of those that have one, so that a minority of wrong clocks has no effect.
func (c *Cluster) clockOffset() time.Duration {
	if len(c.members) == 1 {
		return time.Duration(c.members[0].offset.Load())
	}
	var buf [protocol.MaxNodes]int64
	seen := buf[:0]
	for _, m := range c.members {
		if m.offsetKnown.Load() {
			seen = append(seen, m.offset.Load())
		}
	}
	return time.Duration(protocol.Median(seen))
}

// nodesClock returns what the clocks of the nodes show that have one; ours if none is
// known. If our wall clock is set, it does not follow.
func (c *Cluster) nodesClock() time.Time {
	var buf [protocol.MaxNodes]int64
	seen := buf[:0]
	for _, m := range c.members {
		if m.offsetKnown.Load() {
			seen = append(seen, m.epochAt.Load())
		}
	}
	if len(seen) == 0 {
		return c.clock.Now()
	}
	return time.Unix(0, protocol.Median(seen)+int64(c.clock.Uptime()))
}

// NodeTime returns the time on the nodes' clocks. It asks the nodes if a quorum of
// them has not shown its clock before, by a request about the key, which changes
// nothing. It returns false if too few answer.
func (c *Cluster) NodeTime(ctx context.Context, key string) (time.Time, bool) {
	if !c.clocksKnown() {
		c.Inspect(ctx, key, c.clocksKnown)
	}
	return c.clock.Now().Add(c.clockOffset()), c.clocksKnown()
}

// clocksKnown reports whether a quorum of nodes has shown its clock, or that it has
// none.
func (c *Cluster) clocksKnown() bool {
	n := 0
	for _, m := range c.members {
		if m.offsetKnown.Load() || m.clockless.Load() {
			n++
		}
	}
	return n >= protocol.Quorum(len(c.members)) && c.clockKnown()
}

// identities records which server is behind which node.
type identities struct {
	mu    sync.Mutex
	owner map[string]*Member
}

// identify checks the node's identity, unless it is known.
func (m *Member) identify(ctx context.Context) error {
	if m.identified.Load() {
		return nil
	}
	return m.cluster.ids.check(ctx, m)
}

// check asks m's node for its identity, and refuses it if another node has the
// same: one server must not be counted twice.
func (ids *identities) check(ctx context.Context, m *Member) error {
	n, ok := m.node.(node.Identifier)
	if !ok {
		m.identified.Store(true)
		return nil
	}
	sent := m.cluster.clock.Now()
	id, now, err := n.Identity(ctx)
	if err != nil {
		if !errors.Is(err, node.ErrUnsent) {
			err = fmt.Errorf("%w (%w)", err, node.ErrUnsent)
		}
		return err
	}
	m.showed(sent, m.cluster.clock.Now(), now)
	if now.IsZero() && id != "" {
		m.clockless.Store(true)
	}
	if id == "" {
		m.cluster.log.Warn("redlatch: node does not say which server it is; duplicate-server check skipped", "node", m.name)
		m.identified.Store(true)
		return nil
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if other := ids.owner[id]; other != nil && other != m {
		first, second := other, m
		if second.index < first.index {
			first, second = second, first
		}
		return fmt.Errorf("%w (%w)", &node.ConfigError{
			Field: fmt.Sprintf("nodes[%d]", second.index), Value: second.name,
			Bound:   fmt.Sprintf("another server than nodes[%d], %s", first.index, first.name),
			Problem: fmt.Sprintf("duplicate server: %s and %s are the same; list it once", first.name, second.name),
		}, node.ErrUnsent)
	}
	ids.owner[id] = m
	m.identified.Store(true)
	if w, ok := m.node.(node.Warner); ok {
		for _, warning := range w.Warnings() {
			m.cluster.log.Error("redlatch: "+warning, "node", m.name)
		}
	}
	return nil
}
