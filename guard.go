package redlatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/node"
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
	// GuardOff writes no markers, and minds no quarantine. A node that restarts
	// without its data can then grant what another still holds. A marker of
	// another list of nodes is refused all the same, unless AnyMembership is
	// set.
	GuardOff
)

// quarantineOf returns how long a node that may have forgotten locks sits out:
// until the last lock it can have granted has run out on a clock that is slow,
// and until no token it can have granted is within the window any more, with
// clocks that are off by up to half of it. Where replicas are required, with the
// given lag, it begins to count when the master that was replaced can have
// granted and extended last.
func quarantineOf(maxTTL, window, lag time.Duration) time.Duration {
	q := max(maxTTL, 3*window) + maxTTL/15
	if lag > 0 {
		q += lag + replicaMargin
	}
	return q.Truncate(time.Millisecond)
}

// replicaMargin is for what the lag does not show: a server counts it in whole
// seconds, so up to one more has passed; and what a replica said last may have
// been another one on its way.
const replicaMargin = 2 * time.Second

// guard is what a client holds the nodes' markers against. Bounds that the
// caller left open are taken from the markers.
type guard struct {
	on          bool
	compares    bool // nodes are asked to look at their markers at all
	retention   time.Duration
	fixedTTL    bool // the caller set MaxTTL
	fixedWindow bool // the caller set TokenWindow
	fixedNumber bool // the caller set Replicas
	fixedLag    bool // the caller set ReplicaLag
	failover    bool // a node is a master that another server can replace
	warned      atomic.Bool
	log         *slog.Logger
	current     atomic.Pointer[node.Guard]
	declared    atomic.Bool
	inService   atomic.Bool   // a node was seen trusted, or has granted
	declaring   chan struct{} // held while a new cluster is being declared
}

// init decides whether the guard is on. given are the options as the caller
// gave them.
func (g *guard) init(c *Client, given Options) error {
	able, alone := true, false
	for i, m := range c.members {
		n, ok := m.node.(node.Guarded)
		if !ok && given.Guard == GuardOn {
			return &ConfigError{Field: fmt.Sprintf("nodes[%d]", i), Value: m.name, Bound: "a node that can be guarded, since Guard is on"}
		}
		able = able && ok
		g.compares = g.compares || ok && !given.AnyMembership
		alone = alone || ok && n.GuardsAlone()
	}
	g.on = given.Guard == GuardOn || given.Guard == GuardAuto && able && (len(c.members) > 1 || alone)
	if g.on && given.AnyMembership {
		return &ConfigError{Field: "AnyMembership", Value: true, Bound: "false with the guard on, which goes by the membership; to ignore it, set Guard to GuardOff"}
	}
	g.declared.Store(!g.on || !given.AssumeFresh)
	g.declaring = make(chan struct{}, 1)
	g.retention = c.opts.FenceRetention
	g.fixedTTL, g.fixedWindow = given.MaxTTL != 0, given.TokenWindow != 0
	g.fixedNumber, g.fixedLag = given.Replicas != 0, given.ReplicaLag != 0
	g.failover, g.log = alone, c.log
	if given.Replicas > 0 && !g.on {
		return &ConfigError{Field: "Replicas", Value: given.Replicas, Bound: "0 where the guard is off: it is the guard that counts them (Guard: GuardOn, --guard on)"}
	}

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
	g.current.Store(&node.Guard{
		List: hex.EncodeToString(id[:8]), Nodes: text,
		MaxTTL: c.opts.MaxTTL, Window: c.opts.TokenWindow, Replicas: c.opts.Replicas, ReplicaLag: c.opts.ReplicaLag,
		Quarantine: quarantineOf(c.opts.MaxTTL, c.opts.TokenWindow, c.opts.ReplicaLag),
		Off:        !g.on,
	})
	return nil
}

// bounds returns what is agreed on so far.
func (g *guard) bounds() *node.Guard { return g.current.Load() }

// apply puts the bounds into a request.
func (g *guard) apply(req *node.Request) {
	b := g.bounds()
	req.Window = b.Window
	// A fence that a lock outlives would leave it without a token.
	req.Retention = max(g.retention, 4*b.Window, req.TTL+b.Window)
	if g.compares {
		req.Guard = b
	}
}

// adopt takes over the bounds of the nodes' markers where the caller left them
// open. It reports whether they are others than those that were asked with.
func (g *guard) adopt(rd *round, asked *node.Guard) bool {
	mine := g.bounds()
	if mine.Off {
		return false // the parameters of the markers do not matter
	}
	for _, r := range rd.results {
		theirs := r.Reply.Guard
		if r.Err != nil || r.Reply.Status != node.Misconfigured || theirs == nil || theirs.List != mine.List {
			continue
		}
		if mine != asked {
			return true // another goroutine was faster
		}
		adopted := *theirs
		adopted.Nodes, adopted.Off = mine.Nodes, mine.Off
		if adopted == *mine {
			continue
		}
		if g.fixedTTL && theirs.MaxTTL != mine.MaxTTL || g.fixedWindow && theirs.Window != mine.Window ||
			g.fixedNumber && theirs.Replicas != mine.Replicas || g.fixedLag && theirs.ReplicaLag != mine.ReplicaLag {
			continue
		}
		if checkDuration("MaxTTL", theirs.MaxTTL, MinTTL, maxMaxTTL) != nil || (theirs.Replicas > 0) != (theirs.ReplicaLag > 0) ||
			theirs.Quarantine < quarantineOf(theirs.MaxTTL, theirs.Window, theirs.ReplicaLag) {
			continue
		}
		return g.current.CompareAndSwap(mine, &adopted)
	}
	return false
}

// warn says once that no replicas are required where another server can take a
// node's place.
func (g *guard) warn() {
	if g.on && g.failover && g.bounds().Replicas == 0 && !g.warned.Swap(true) {
		g.log.Warn("redlatch: no replicas are required behind Sentinel: a master that is cut off with a holder goes on extending while its promoted replica grants; see redlatch init --replicas")
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
	c.learnMarkers(ctx)
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
		if !g.fixedNumber {
			next.Replicas = max(next.Replicas, s.Marked.Replicas)
		}
		if !g.fixedLag && next.Replicas > 0 {
			next.ReplicaLag = max(next.ReplicaLag, s.Marked.ReplicaLag)
		}
	}
	next.Quarantine = quarantineOf(next.MaxTTL, next.Window, next.ReplicaLag)
	g.current.Store(&next)
}

// mismatch says in what the nodes' markers differ from what this client was
// given; nil if they do not.
func (g *guard) mismatch(rd *round) error {
	mine := g.bounds()
	for _, r := range rd.results {
		if r.Err != nil || r.Reply.Status != node.Misconfigured {
			continue
		}
		theirs := r.Reply.Guard
		switch {
		case theirs == nil:
			return &ConfigError{Field: "nodes", Value: r.Node, Bound: unreadable(r.Reply.Value)}
		case theirs.Barred():
			return &ConfigError{Changing: true, Field: "nodes", Value: mine.Nodes, Bound: fmt.Sprintf(
				"a list that is in service: %s is barred, since the change to the list %q is not finished; %s", r.Node, theirs.Nodes, runAgain)}
		case theirs.List != mine.List:
			return &ConfigError{Field: "nodes", Value: mine.Nodes, Bound: fmt.Sprintf(
				"the list that %s is marked for, %q%s; %s", r.Node, theirs.Nodes, difference(mine.Nodes, theirs.Nodes), waysOut)}
		case mine.Off:
			if rd.ttl > theirs.MaxTTL {
				return &ConfigError{Field: "TTL", Value: rd.ttl, Bound: fmt.Sprintf("%v at the most, as %s is marked", theirs.MaxTTL, r.Node)}
			}
			continue
		case theirs.MaxTTL != mine.MaxTTL:
			return &ConfigError{Field: "MaxTTL", Value: mine.MaxTTL, Bound: fmt.Sprintf("%v, as %s is marked", theirs.MaxTTL, r.Node)}
		case theirs.Window != mine.Window:
			return &ConfigError{Field: "TokenWindow", Value: mine.Window, Bound: fmt.Sprintf("%v, as %s is marked", theirs.Window, r.Node)}
		case theirs.Replicas != mine.Replicas:
			return &ConfigError{Field: "Replicas", Value: mine.Replicas, Bound: fmt.Sprintf("%d, as %s is marked", theirs.Replicas, r.Node)}
		case theirs.ReplicaLag != mine.ReplicaLag:
			return &ConfigError{Field: "ReplicaLag", Value: mine.ReplicaLag, Bound: fmt.Sprintf("%v, as %s is marked", theirs.ReplicaLag, r.Node)}
		}
		return &ConfigError{Field: "quarantine", Value: mine.Quarantine, Bound: fmt.Sprintf("%v, as %s is marked", theirs.Quarantine, r.Node)}
	}
	return nil
}

// refusal says why a round found no quorum: that the nodes are marked for
// others, if too many are, or what each of them answered.
func (g *guard) refusal(rd *round, req node.Request) error {
	if err := g.mismatch(rd); err != nil && !rd.available() {
		return err
	}
	return rd.quorumError(req)
}

// waysOut is what to do about a marker of another membership.
const waysOut = "use that list; or, if these are the same servers by other addresses, give the list one name in all clients (Options.NodeList, --node-list); " +
	"or, if this server was taken off that list, mark it for this one with redlatch init --retired; " +
	"or, if two applications share the server and no lock names, and the guard is off, set Options.AnyMembership (--any-membership); " +
	"to change the list, see redlatch init --help"

// unreadable says what to do about a marker in another version.
func unreadable(version string) string {
	const remove = "stop the clients of that release, remove the marker from every node (redis-cli DEL redlatch:1:marker) and run redlatch init, which quarantines the nodes"
	if version == "1" {
		return "a node with a marker that this release can read: it has version 1, of redlatch before its first release; " + remove
	}
	return fmt.Sprintf("a node with a marker that this release can read: it has version %q, of another release; use that, or %s", version, remove)
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
	case errors.Is(err, ErrNotFresh):
		c.log.Info("redlatch: nodes are not taken for new", "err", err)
	case err != nil:
		c.log.Warn("redlatch: nodes could not be declared new", "err", err)
	}
	return nil
}

// repair gives the lock to a node that said it has none, in a round in which a
// quorum extended it. It never counts towards that round. A node that is in
// quarantine takes it later.
func (l *Lease) repair(i int, r NodeResult) {
	m := l.c.members[i]
	if r.Err != nil || r.Reply.Status != node.Absent || l.c.clock.Uptime() < time.Duration(m.sitting.Load()) {
		return
	}
	if l.req.Token == 0 {
		// It is not repaired; but the node may have lost its marker, too.
		if l.c.guard.on {
			l.c.marking.start(l.c, l.req.Name)
		}
		return
	}
	if l.isOver() || !l.c.background.start() {
		return
	}
	number := l.send(1 << i)
	req := l.request(node.OpRepair)
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
		l.answered(number, i, r, req)
		if r.Err == nil && r.Reply.Status == node.Granted {
			l.c.log.Info("redlatch: lock is back on a node that lacked it", "node", m.name, "name", l.name)
		}
	}()
}
