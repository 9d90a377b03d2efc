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
)

// Member is a node as a client knows it: what its answers have shown so far.
type Member struct {
	node    node.Node
	name    string
	prompt  bool
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
	wrongClock  atomic.Bool // and this has been logged

	// sitting is the end, on the client's clock, of the node's known
	// quarantine; 0 if it is not quarantined, unmarkedYet if it has to be
	// marked. sitsFor is the reason.
	sitting atomic.Int64
	sitsFor atomic.Pointer[string]

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

// Node returns the node itself.
func (m *Member) Node() node.Node { return m.node }

// Call asks the node, and records what the answer shows about it.
func (m *Member) Call(ctx context.Context, req node.Request) node.Result {
	m.begin()
	sent := m.cluster.clock.Uptime()
	reply, err := m.ask(ctx, req)
	r := m.end(req.Op, req.Name, reply, err, ctx.Err() != nil)
	if f := m.cluster.cfg.NodeEnd; f != nil {
		f(m, req.Op, reply.Status, r.Err, m.cluster.clock.Uptime()-sent)
	}
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
func (m *Member) end(op node.Op, name string, reply node.Reply, err error, late bool) node.Result {
	m.waitingSince.Store(int64(m.cluster.clock.Uptime()))
	m.inflight.Add(-1)
	changed := m.failing.Swap(err != nil) != (err != nil)
	m.late.Store(timedOut(err) || err != nil && late)
	if timedOut(err) {
		// The node's context, not the caller's: errors.Is must not confuse the
		// two.
		err = &timeoutError{text: err.Error(), unsent: errors.Is(err, node.ErrUnsent)}
	}
	if err == nil {
		changed = m.noteQuarantine(op, reply) || changed
		m.cluster.guard.noteService(op, reply.Status)
		m.janitor.answered()
		if reply.NeedsMark() {
			m.cluster.marking.start(m.cluster, name)
		}
	}
	if changed {
		m.changed()
	}
	return node.Result{Node: m.name, Reply: reply, Err: err}
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
}

func (e *timeoutError) Error() string { return ErrNodeTimeout.Error() + ": " + e.text }

func (e *timeoutError) Is(target error) bool {
	return target == ErrNodeTimeout || target == node.ErrUnsent && e.unsent
}

func (m *Member) ask(ctx context.Context, req node.Request) (node.Reply, error) {
	if !m.identified.Load() {
		if err := m.cluster.ids.check(ctx, m); err != nil {
			return node.Reply{}, err
		}
	}
	reply, err := m.do(ctx, req)
	if err == nil && reply.Status == node.Held && req.Op == node.OpAcquire {
		if release, ours := m.cluster.dropped.key(reply.Value); ours {
			// The node has not executed the release of a claim that we gave up.
			if _, err := m.do(ctx, release); err != nil {
				return node.Reply{}, err
			}
			return m.do(ctx, req)
		}
	}
	return reply, err
}

// do sends one request, and learns from the reply how far the node's clock is
// ahead of ours.
func (m *Member) do(ctx context.Context, req node.Request) (node.Reply, error) {
	sent := m.cluster.clock.Now()
	reply, err := m.node.Do(ctx, req)
	if err == nil {
		m.showed(sent, reply.Now)
	}
	return reply, err
}

// showed records the node's clock during a round trip that began at sent.
func (m *Member) showed(sent, now time.Time) {
	if now.IsZero() {
		return
	}
	known := time.Duration(m.offset.Load())
	offset := protocol.Offset(known, now.Sub(m.cluster.clock.Now()), now.Sub(sent))
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
	known := 0
	for _, m := range c.members {
		if m.offsetKnown.Load() {
			known++
		}
	}
	if known < 3 || known < protocol.Quorum(len(c.members)) {
		return // it is not known yet which are wrong
	}
	median := c.clockOffset()
	for _, m := range c.members {
		if !m.offsetKnown.Load() {
			continue
		}
		off := time.Duration(m.offset.Load()) - median
		wrong := protocol.WrongClock(off, c.guard.parameters().Window)
		if wrong && !m.wrongClock.Swap(true) {
			c.say(slog.LevelWarn, "redlatch: node's clock is not with the others'", "node", m.name, "ahead", off.Round(time.Millisecond))
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
		m.cluster.say(slog.LevelWarn, "redlatch: node cannot wake those who wait, and is asked again and again instead", "node", m.name, "err", err)
	} else if err == nil && m.asking.Swap(false) {
		m.cluster.say(slog.LevelInfo, "redlatch: node wakes those who wait again", "node", m.name)
	}
}

// maxProbes is how many calls at once may try a node that did not answer.
const maxProbes = 16

// probe reports whether a call may try a node that does not answer: a few calls
// at a time, or one more from time to time if those hang.
func (m *Member) probe(now time.Duration) bool {
	if m.probes.Load() >= maxProbes && now-time.Duration(m.probed.Load()) < 4*m.cluster.patience() {
		return false
	}
	m.probes.Add(1)
	m.probed.Store(int64(now))
	return true
}

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

// clockKnown reports whether any node has shown its clock.
func (c *Cluster) clockKnown() bool {
	for _, m := range c.members {
		if m.offsetKnown.Load() {
			return true
		}
	}
	return false
}

// clockOffset returns how far the nodes' clocks are ahead of ours. It is the
// median, so that a minority of wrong clocks has no effect.
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

// identities records which server is behind which node.
type identities struct {
	mu    sync.Mutex
	owner map[string]*Member
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
	m.showed(sent, now)
	if id == "" {
		m.cluster.log.Warn("redlatch: node does not say which server it is; that no other node is the same one goes unchecked", "node", m.name)
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
			Bound: fmt.Sprintf("another server than nodes[%d], %s", first.index, first.name),
		}, node.ErrUnsent)
	}
	ids.owner[id] = m
	m.identified.Store(true)
	if w, ok := m.node.(interface{ Warnings() []string }); ok {
		for _, warning := range w.Warnings() {
			m.cluster.log.Warn("redlatch: "+warning, "node", m.name)
		}
	}
	return nil
}
