package redlatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// GuardMode says whether nodes that may have forgotten locks sit out.
type GuardMode uint8

// The modes of the guard.
const (
	// GuardAuto is GuardOn for several nodes and for a master that Sentinel
	// manages, where the nodes can be guarded, and GuardOff otherwise: a
	// single plain server has no majority to carry on meanwhile.
	GuardAuto GuardMode = iota
	// GuardOn has every node carry a marker, and sit out after it lost it.
	GuardOn
	// GuardOff leaves markers alone. A node that restarts without its data
	// can then grant what another still holds.
	GuardOff
)

// quarantineOf returns how long a node that may have forgotten locks sits out:
// until the last lock it can have granted has run out on a clock that is slow,
// and until no token it can have granted is within the window any more, with
// clocks that are off by up to half of it.
func quarantineOf(maxTTL, window time.Duration) time.Duration {
	return (max(maxTTL, 3*window) + maxTTL/15).Truncate(time.Millisecond)
}

// guard is what a client holds the nodes' markers against. Bounds that the
// caller left open are taken from the markers.
type guard struct {
	on          bool
	retention   time.Duration
	fixedTTL    bool // the caller set MaxTTL
	fixedWindow bool // the caller set TokenWindow
	current     atomic.Pointer[Guard]
	declared    atomic.Bool
	declaring   chan struct{} // held while a new cluster is being declared
}

// init decides whether the guard is on. given are the options as the caller
// gave them.
func (g *guard) init(c *Client, given Options) error {
	able, alone := true, false
	for i, m := range c.members {
		node, ok := m.node.(Guarded)
		if !ok && given.Guard == GuardOn {
			return &ConfigError{Field: fmt.Sprintf("nodes[%d]", i), Value: m.name, Bound: "a node that can be guarded, since Guard is on"}
		}
		able = able && ok
		alone = alone || ok && node.GuardsAlone()
	}
	g.on = given.Guard == GuardOn || given.Guard == GuardAuto && able && (len(c.members) > 1 || alone)
	g.declared.Store(!g.on || !given.AssumeFresh)
	g.declaring = make(chan struct{}, 1)
	g.retention = c.opts.FenceRetention
	g.fixedTTL, g.fixedWindow = given.MaxTTL != 0, given.TokenWindow != 0

	text := given.NodeList
	if text == "" {
		var names []string
		for _, m := range c.members {
			names = append(names, m.name)
		}
		slices.Sort(names)
		text = strings.Join(names, " ")
	}
	id := sha256.Sum256([]byte(text))
	g.current.Store(&Guard{
		List: hex.EncodeToString(id[:8]), Nodes: text,
		MaxTTL: c.opts.MaxTTL, Window: c.opts.TokenWindow, Quarantine: quarantineOf(c.opts.MaxTTL, c.opts.TokenWindow),
	})
	return nil
}

// bounds returns what is agreed on so far.
func (g *guard) bounds() *Guard { return g.current.Load() }

// apply puts the bounds into a request.
func (g *guard) apply(req *Request) {
	b := g.bounds()
	req.Window = b.Window
	// A fence that a lock outlives would leave it without a token.
	req.Retention = max(g.retention, 4*b.Window, req.TTL+b.Window)
	if g.on {
		req.Guard = b
	}
}

// adopt takes over the bounds of the nodes' markers where the caller left them
// open. It reports whether they are others than those that were asked with.
func (g *guard) adopt(rd *round, asked *Guard) bool {
	mine := g.bounds()
	for _, r := range rd.results {
		theirs := r.Reply.Guard
		if r.Err != nil || r.Reply.Status != Misconfigured || theirs == nil || theirs.List != mine.List {
			continue
		}
		if mine != asked {
			return true // another goroutine was faster
		}
		if g.fixedTTL && theirs.MaxTTL != mine.MaxTTL || g.fixedWindow && theirs.Window != mine.Window {
			continue
		}
		if checkDuration("MaxTTL", theirs.MaxTTL, MinTTL, maxMaxTTL) != nil || theirs.Quarantine < quarantineOf(theirs.MaxTTL, theirs.Window) {
			continue
		}
		adopted := *theirs
		adopted.Nodes, adopted.Sure = mine.Nodes, false
		return g.current.CompareAndSwap(mine, &adopted)
	}
	return g.beSure(rd, mine, asked)
}

// beSure finds out whether the list and its bounds are as the caller gave them,
// or left them: because a node is marked so, or because every node has said
// that it carries no marker, so that there is nothing to contradict. Until then
// no node is marked: a client with another list or shorter bounds must not bring
// nodes into service on its own word. It reports whether it is now worth asking
// again.
func (g *guard) beSure(rd *round, mine, asked *Guard) bool {
	unmarked, agree := 0, false
	for _, r := range rd.results {
		switch {
		case r.Err != nil:
		case r.Reply.Status == Misconfigured:
			return false
		case r.Reply.Status == Quarantined && r.Reply.Value == ReasonUnmarked:
			unmarked++
		default:
			agree = true // it looked at its marker before it said anything else
		}
	}
	if unmarked == 0 || mine.Sure && mine == asked {
		return false
	}
	if mine != asked {
		return true // another goroutine was faster
	}
	if !agree && unmarked < rd.nodes {
		return false
	}
	sure := *mine
	sure.Sure = true
	return g.current.CompareAndSwap(mine, &sure)
}

// won notes that a quorum is marked as we are: from now on the rest may be too.
func (g *guard) won() {
	if mine := g.bounds(); g.on && !mine.Sure {
		sure := *mine
		sure.Sure = true
		g.current.CompareAndSwap(mine, &sure)
	}
}

// learn looks at the nodes' markers when a caller wants more than the default
// bounds allow and has left them open. It reports whether they were others.
func (g *guard) learn(ctx context.Context, c *Client, err error) bool {
	var bad *ConfigError
	if !g.on || g.fixedTTL || !errors.As(err, &bad) || bad.Field != "TTL" {
		return false
	}
	before := g.bounds().MaxTTL
	ctx, cancel := context.WithTimeout(ctx, declareLimit)
	defer cancel()
	c.adoptMarkers(ctx)
	return g.bounds().MaxTTL != before
}

// follow takes over the bounds of a former list, as far as the caller left them
// open: the longest there are.
func (g *guard) follow(states []NodeState) {
	next := *g.bounds()
	for _, s := range states {
		if s.Marked == nil {
			continue
		}
		if !g.fixedTTL {
			next.MaxTTL = max(next.MaxTTL, s.Marked.MaxTTL)
		}
		if !g.fixedWindow {
			next.Window = max(next.Window, s.Marked.Window)
		}
	}
	next.Quarantine = quarantineOf(next.MaxTTL, next.Window)
	g.current.Store(&next)
}

// mismatch says in what the nodes' markers differ from what this client was
// given; nil if they do not.
func (g *guard) mismatch(rd *round) error {
	mine := g.bounds()
	for _, r := range rd.results {
		if r.Err != nil || r.Reply.Status != Misconfigured {
			continue
		}
		theirs := r.Reply.Guard
		switch {
		case theirs == nil:
			return &ConfigError{Field: "nodes", Value: r.Node, Bound: "nodes whose marker this release can read: it was written by another"}
		case theirs.barred():
			return &ConfigError{Field: "nodes", Value: mine.Nodes, Bound: fmt.Sprintf(
				"a list that is in service: %s is barred, since the change to the list %q is not finished; %s", r.Node, theirs.Nodes, runAgain)}
		case theirs.List != mine.List:
			return &ConfigError{Field: "nodes", Value: mine.Nodes, Bound: fmt.Sprintf(
				"the list that %s is marked for, %q%s; to change the list, see redlatch init --help", r.Node, theirs.Nodes, difference(mine.Nodes, theirs.Nodes))}
		case theirs.MaxTTL != mine.MaxTTL:
			return &ConfigError{Field: "MaxTTL", Value: mine.MaxTTL, Bound: fmt.Sprintf("%v, as %s is marked", theirs.MaxTTL, r.Node)}
		case theirs.Window != mine.Window:
			return &ConfigError{Field: "TokenWindow", Value: mine.Window, Bound: fmt.Sprintf("%v, as %s is marked", theirs.Window, r.Node)}
		}
		return &ConfigError{Field: "quarantine", Value: mine.Quarantine, Bound: fmt.Sprintf("%v, as %s is marked", theirs.Quarantine, r.Node)}
	}
	return nil
}

// difference names what stands in one list of nodes alone.
func difference(mine, theirs string) string {
	a, b := strings.Fields(mine), strings.Fields(theirs)
	without := func(list, other []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) }), " ")
	}
	var s string
	if missing := without(b, a); missing != "" {
		s += "; missing here: " + missing
	}
	if extra := without(a, b); extra != "" {
		s += "; not there: " + extra
	}
	return s
}

// declareLimit bounds the time that a first lock may take to read or write the
// markers; each slot of a Redis Cluster has one, and all take a second or so.
const declareLimit = 5 * time.Second

// start declares a new cluster before the first lock, if the caller asked for
// that. It is tried once: where not every node could be asked, the guard stands
// and says what it has to say.
func (g *guard) start(ctx context.Context, c *Client) error {
	if g.declared.Load() {
		return nil
	}
	select {
	case g.declaring <- struct{}{}:
		defer func() { <-g.declaring }()
	case <-ctx.Done():
		return endedError(ctx, nil)
	}
	if g.declared.Load() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, declareLimit)
	defer cancel()
	_, err := c.Init(limited, InitOptions{AssumeFresh: true})
	if ctx.Err() != nil {
		return endedError(ctx, err)
	}
	g.declared.Store(true)
	switch {
	case errors.Is(err, ErrConfig):
		return err
	case err != nil && !errors.Is(err, ErrNotFresh):
		c.log.Warn("redlatch: nodes could not be declared new", "err", err)
	}
	return nil
}

// noteQuarantine logs once when a node begins to sit out, and once when it is
// back.
func (m *member) noteQuarantine(reply Reply) {
	if reply.Status == Quarantined {
		until := m.client.clock.Uptime() + reply.Left
		if before := m.sitting.Swap(int64(max(until, 1))); before == 0 {
			m.client.log.Warn("redlatch: node sits out", "node", m.name, "left", reply.Left, "reason", quarantineReason(reply.Value))
		}
		return
	}
	if reply.Status == Granted && m.sitting.Load() != 0 && m.client.clock.Uptime() >= time.Duration(m.sitting.Load()) && m.sitting.Swap(0) != 0 {
		m.client.log.Info("redlatch: node takes part again", "node", m.name)
	}
}

// repair gives the lock to a node that said it has none, in a round in which a
// quorum extended it. It never counts towards that round. A node that is in
// quarantine takes it later.
func (l *Lease) repair(node int, r NodeResult) {
	m := l.c.members[node]
	if l.req.Token == 0 || r.Err != nil || r.Reply.Status != Absent || l.c.clock.Uptime() < time.Duration(m.sitting.Load()) {
		return
	}
	if l.isOver() || !l.c.background.start() {
		return
	}
	number := l.send(1 << node)
	req := l.request(OpRepair)
	limit := l.c.limit(req)
	// Counted from when the node said that it has none, which is before we
	// send: when we have stopped waiting for an answer, and take the repair
	// back, it cannot be carried out any more.
	req.Until = r.Reply.Now.Add(limit)
	go func() {
		defer l.c.background.end()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		r := m.call(ctx, req)
		l.answered(number, node, r, req)
		if r.Err == nil && r.Reply.Status == Granted {
			l.c.log.Info("redlatch: lock is back on a node that lacked it", "node", m.name, "name", l.name)
		}
	}()
}
