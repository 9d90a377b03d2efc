package runner

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

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// guard is what a client compares the nodes' markers with. Cluster parameters
// that the caller did not set are taken from the markers.
type guard struct {
	on        bool
	compares  bool           // nodes are asked to compare their markers
	fixed     protocol.Fixed // what the caller set
	failover  bool           // a node can require replicas of a master that one of them can replace
	warned    atomic.Bool
	log       *slog.Logger
	current   atomic.Pointer[node.Guard]
	declared  atomic.Bool
	inService atomic.Bool   // a node was seen to be trusted, or has granted
	declaring chan struct{} // held while new nodes are being declared
	returns   atomic.Uint64 // the generation from which on ours is in service again, after another membership was seen on a node; 0 if none was, or if it is
}

// init switches the guard on or off, as protocol.GuardIsOn decides, and refuses settings
// that contradict that.
func (g *guard) init(c *Cluster, nodes []node.Node) error {
	given := c.cfg
	for i, m := range c.members {
		_, ok := m.node.(node.Guarded)
		if !ok && given.Guard == protocol.GuardOn {
			return &node.ConfigError{Field: fmt.Sprintf("nodes[%d]", i), Value: m.name, Bound: "a node that can be guarded, since Guard is on"}
		}
		g.compares = g.compares || ok && !given.AnyMembership
		counter, counts := m.node.(node.ReplicaCounter)
		if given.Parameters.Replicas > 0 && !counts {
			return &node.ConfigError{Field: "Replicas", Value: given.Parameters.Replicas, Bound: "0 with " + m.name + ", which cannot count its replicas"}
		}
		g.failover = g.failover || counts && counter.GuardsAlone()
	}
	g.on = protocol.GuardIsOn(given.Guard, nodes)
	if g.on && given.AnyMembership {
		return &node.ConfigError{Field: "AnyMembership", Value: true, Bound: "false with the guard on, which goes by the membership; to ignore it, set Guard to GuardOff"}
	}
	g.declared.Store(!g.on || !given.AssumeFresh)
	g.declaring = make(chan struct{}, 1)
	g.fixed = given.Fixed
	g.log = c.log
	p := given.Parameters
	if p.Replicas > 0 && !g.on {
		return &node.ConfigError{Field: "Replicas", Value: p.Replicas, Bound: "0 where the guard is off: it is the guard that counts them (Guard: GuardOn, --guard on)"}
	}

	text := protocol.Named(given.Membership, len(c.members))
	if given.Membership == "" {
		var names []string
		for _, m := range c.members {
			names = append(names, m.name)
		}
		slices.Sort(names)
		text = strings.Join(names, " ")
	}
	id := sha256.Sum256([]byte(text))
	p.Membership, p.Nodes, p.Off = hex.EncodeToString(id[:8]), text, !g.on
	p.Quarantine = protocol.Quarantine(p.MaxTTL, p.Window, p.ReplicaLag)
	g.current.Store(&p)
	return nil
}

// parameters returns the cluster parameters, as far as they are known.
func (g *guard) parameters() *node.Guard { return g.current.Load() }

// Guarded reports whether the restart guard is on.
func (c *Cluster) Guarded() bool { return c.guard.on }

// Compares reports whether nodes are asked to compare their markers.
func (c *Cluster) Compares() bool { return c.guard.compares }

// Parameters returns the cluster parameters, as far as they are known.
func (c *Cluster) Parameters() *node.Guard { return c.guard.parameters() }

// Apply sets the cluster parameters in a request.
func (c *Cluster) Apply(req *node.Request) {
	g := &c.guard
	b := g.parameters()
	req.Window = b.Window
	req.Retention = protocol.FenceRetention(c.cfg.FenceRetention, req.TTL, b.Window)
	if g.compares {
		req.Guard = b
	}
}

// adopt takes the parameters that the caller did not set from the nodes'
// markers, as protocol.AdoptedFrom decides. It reports whether they differ from
// sentWith, the parameters of the request, and if such markers matter at all.
func (g *guard) adopt(theirs []node.Guard, sentWith *node.Guard) bool {
	mine := g.parameters()
	next, matter := protocol.AdoptedFrom(*mine, theirs, g.fixed)
	// Another goroutine may have been faster.
	return matter && (mine != sentWith || next != *mine && g.current.CompareAndSwap(mine, &next))
}

// noteOther records if a node is marked, or barred, for another membership.
func (g *guard) noteOther(theirs *node.Guard) {
	raise(&g.returns, protocol.ReturnsFrom(g.parameters(), theirs))
}

// warn logs once that no replicas are required although another server can
// replace a node.
func (g *guard) warn() {
	if g.on && g.failover && g.parameters().Replicas == 0 && !g.warned.Swap(true) {
		g.log.Error("redlatch: no replicas are required behind Sentinel: a master that is cut off with a holder goes on extending while its promoted replica grants; see redlatch init --replicas")
	}
}

// Learn reads the nodes' markers if a caller wants more than the default
// parameters allow and has not set them. It reports whether they differ.
func (c *Cluster) Learn(ctx context.Context, err error) bool {
	g := &c.guard
	var bad *node.ConfigError
	if !g.on || g.fixed.MaxTTL || !errors.As(err, &bad) || bad.Field != "TTL" {
		return false
	}
	before := g.parameters().MaxTTL
	ctx, cancel := context.WithTimeout(ctx, declareLimit)
	defer cancel()
	c.learnMarkers(ctx)
	return g.parameters().MaxTTL != before
}

// NewChange returns a change to the client's membership. former and own are the names
// of servers.
func (c *Cluster) NewChange(former, own []string) protocol.Change {
	return protocol.NewChange(*c.guard.parameters(), c.guard.fixed, former, own)
}

// SetParameters sets the cluster parameters, for a change.
func (c *Cluster) SetParameters(g node.Guard) { c.guard.current.Store(&g) }

// Mismatch returns how the nodes' markers differ from the client's settings;
// nil if they do not.
func (c *Cluster) Mismatch(results []observe.Result, ttl time.Duration) error {
	mine := c.guard.parameters()
	for _, r := range results {
		if r.Err != nil || r.Reply.Status != node.Misconfigured {
			continue
		}
		theirs := r.Reply.Guard
		switch protocol.Compare(*mine, theirs, ttl) {
		case protocol.Unreadable:
			return &node.ConfigError{Field: "nodes", Value: r.Node, Bound: unreadable(r.Reply.Version)}
		case protocol.Barred:
			return &node.ConfigError{Changing: true, Field: "nodes", Value: mine.Nodes, Bound: "a membership that is in service", Problem: fmt.Sprintf(
				"%s is barred: the change of the membership to %q is not finished; %s", r.Node, theirs.Nodes, RunAgain)}
		case protocol.OtherMembership:
			return &node.ConfigError{Field: "nodes", Value: mine.Nodes, Bound: fmt.Sprintf("%q", theirs.Nodes), Problem: fmt.Sprintf(
				"membership differs from the one on %s: %s; %s", r.Node, Difference(mine.Nodes, theirs.Nodes), c.wayOut(r.Node, theirs.Nodes))}
		case protocol.TTLTooLong:
			return &node.ConfigError{Field: "TTL", Value: ttl, Bound: fmt.Sprintf("%v at the most, as %s is marked", theirs.MaxTTL, r.Node)}
		case protocol.OtherMaxTTL:
			return &node.ConfigError{Field: "MaxTTL", Value: mine.MaxTTL, Bound: fmt.Sprintf("%v, as %s is marked", theirs.MaxTTL, r.Node)}
		case protocol.OtherWindow:
			return &node.ConfigError{Field: "window", Value: mine.Window, Bound: fmt.Sprintf("%v, as %s is marked", theirs.Window, r.Node)}
		case protocol.OtherReplicas:
			return &node.ConfigError{Field: "Replicas", Value: mine.Replicas, Bound: fmt.Sprintf("%d, as %s is marked", theirs.Replicas, r.Node)}
		case protocol.OtherQuarantine:
			return &node.ConfigError{Field: "quarantine", Value: mine.Quarantine, Bound: fmt.Sprintf("%v, as %s is marked", theirs.Quarantine, r.Node)}
		}
	}
	return nil
}

// RunAgain says what to do about a membership change that was interrupted.
const RunAgain = "run the same change again when all nodes answer, or one back to the former membership (redlatch init --help)"

// wayOut says what to do about a marker of another membership, theirs, on a
// node.
func (c *Cluster) wayOut(name, theirs string) string {
	const others = `other cases: "When a client is refused" in docs/operations.md`
	label, nodes, isNamed := protocol.ParseNamed(theirs)
	switch {
	case slices.Contains(strings.Fields(theirs), name):
		var to []string
		for _, m := range c.members {
			to = append(to, m.name)
		}
		from := strings.Fields(theirs)
		hint := ""
		if !areAddresses(to) || !areAddresses(from) {
			to, from = []string{"NEW"}, []string{"OLD"}
			hint = " with the addresses of the nodes (their names have no user and no parameters)"
		}
		change := "redlatch init --nodes " + strings.Join(to, ",")
		if c.cfg.Membership != "" {
			change += " --membership " + c.cfg.Membership
		}
		return fmt.Sprintf("use that membership; or, to change it, run %s --former %s%s; %s", change, strings.Join(from, ","), hint, others)
	case isNamed && label == c.cfg.Membership:
		return fmt.Sprintf("list the same %d in all clients; or, to change the membership, give it a new name, and list the present ones in redlatch init --former; %s", nodes, others)
	case isNamed:
		return fmt.Sprintf("give the membership that name in all clients (Cluster.Membership, --membership %s); %s", label, others)
	}
	return "if this server was removed from that membership, run redlatch init --former " + name + "; " +
		"if these are the same servers by other addresses, give the membership one name in all clients (Cluster.Membership, --membership); " + others
}

// areAddresses reports whether names of nodes can be used as their addresses: those
// of databases have no user, and the table in their path.
func areAddresses(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, "redis") })
}

// unreadable says what to do about a marker of another version.
func unreadable(version string) string {
	const remove = "stop the clients of that release, and those with a list of a former membership, remove the marker from every node of the membership (redis-cli DEL redlatch:1:marker) and run redlatch init, which quarantines the nodes"
	return fmt.Sprintf("a node with a marker that this release can read: it has version %q, of another release; use that, or %s", version, remove)
}

// Difference says how two memberships differ: the nodes that are in one only, or
// both if one has a name.
func Difference(mine, theirs string) string {
	_, _, here := protocol.ParseNamed(mine)
	_, _, there := protocol.ParseNamed(theirs)
	if here || there {
		return fmt.Sprintf("%s there, %s here", theirs, mine)
	}
	a, b := strings.Fields(mine), strings.Fields(theirs)
	without := func(list, other []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) }), " ")
	}
	var parts []string
	if missing := without(b, a); missing != "" {
		parts = append(parts, "this client lacks "+missing)
	}
	if extra := without(a, b); extra != "" {
		parts = append(parts, "the servers do not know "+extra)
	}
	return strings.Join(parts, "; ")
}

// declareLimit is how long a first lock may take to read or write the markers.
// Each slot of a Redis Cluster has one, and all of them take about a second.
const declareLimit = 5 * time.Second
