//go:build unix

package chaos

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// cluster is the servers of a run and the ways to them.
type cluster struct {
	dir     string
	program string
	net     *namespace // nil where the servers share our network
	shim    string     // the clock shim's library; empty where there is none
	nodes   []*node
}

// node is one address of the list: a server, which may be replaced by another,
// and a proxy to it for each client.
type node struct {
	number int // from 1
	kind   ServerKind
	in     *cluster
	links  []*servertest.Proxy // by client
	clock  nodeClock           // nil where the clock cannot be moved

	mu       sync.Mutex
	server   *redisproc.Server    // nil for a database, and behind a sentinel
	database *servertest.Database // nil for Redis
	watched  *watched             // nil for all but a sentinel
	lives    int                  // how many servers it has had
}

// nodeClock is a wall clock that can be set: see package clockshim.
type nodeClock interface {
	Env(library string) []string
	Off() time.Duration
	Set(off, gain time.Duration)
	Slew(gain time.Duration)
	Close() error
}

// durable are the settings with which a server keeps all that it acknowledged,
// unless its files are tampered with: kill -9 leaves what is in the page cache.
// With everysec, a server whose last sync is still in progress acknowledges what it
// has not even written.
func durable() []string {
	return []string{"--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0", "--repl-diskless-sync-delay", "0"}
}

// start starts a node of each kind for so many clients, and declares them new.
func (c *cluster) start(ctx context.Context, kinds []ServerKind, clients int, b bounds) error {
	for i, kind := range kinds {
		nd := &node{number: i + 1, kind: kind, in: c, database: kind.database()}
		if c.shim != "" && kind == Redis {
			clock, err := newClock(filepath.Join(c.dir, "clock"+strconv.Itoa(i+1)))
			if err != nil {
				return err
			}
			nd.clock = clock
		}
		c.nodes = append(c.nodes, nd)
		switch kind {
		case Redis:
			server, err := nd.newServer()
			if err != nil {
				return err
			}
			nd.server = server
		case Sentinel:
			nd.watched = &watched{in: nd}
		}
		if err := nd.start(); err != nil {
			return err
		}
		for range clients {
			link, err := servertest.OpenProxy(nd.address())
			if err != nil {
				return err
			}
			nd.links = append(nd.links, link)
		}
	}
	return c.declare(ctx, b)
}

// start starts the node's server, with the data that it has.
func (n *node) start() error {
	switch {
	case n.watched != nil:
		return n.watched.start()
	case n.db() != nil:
		return n.db().Start()
	}
	return n.at().Start(durable()...)
}

// process returns the node's server, if it is one at a time.
func (n *node) process() process {
	if db := n.db(); db != nil {
		return db
	}
	return n.at()
}

// newServer returns a place for a server of this node, on a port and in a
// folder of its own.
func (n *node) newServer() (*redisproc.Server, error) {
	port, err := redisproc.FreePort()
	if err != nil {
		return nil, err
	}
	n.lives++
	s := &redisproc.Server{Program: n.in.program, Bind: []string{"127.0.0.1"}, Port: port, // free here, and not used in the namespace
		Dir: filepath.Join(n.in.dir, fmt.Sprintf("n%d.%d", n.number, n.lives))}
	if n.in.net != nil {
		s.Wrap = n.in.net.wrap()
		s.Bind = append(s.Bind, n.in.net.address)
	}
	if n.clock != nil {
		s.Env = n.clock.Env(n.in.shim)
	}
	return s, nil
}

// address is where the proxies reach the node's server.
func (n *node) address() string {
	switch {
	case n.watched != nil:
		return n.watched.sentinel.Addr()
	case n.db() != nil:
		return n.db().Addr()
	}
	host := "127.0.0.1"
	if n.in.net != nil {
		host = n.in.net.address
	}
	return net.JoinHostPort(host, strconv.Itoa(n.at().Port))
}

// url is the address of the node by way of a proxy, or of its server itself.
func (n *node) url(address string) string {
	switch {
	case n.watched != nil:
		return "redis+sentinel://" + address + "/" + masterName
	case n.db() != nil:
		return n.db().URL(address)
	}
	return "redis://" + address
}

// db returns the database that the node is at the moment.
func (n *node) db() *servertest.Database {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.database
}

// at returns the Redis server that the node is at the moment.
func (n *node) at() *redisproc.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server
}

// become has another server be the node: every way to the node leads there.
func (n *node) become(s process) {
	n.mu.Lock()
	switch s := s.(type) {
	case *redisproc.Server:
		n.server = s
	case *servertest.Database:
		n.database = s
	}
	n.mu.Unlock()
	for _, link := range n.links {
		link.LeadTo(n.address())
		link.Cut()
	}
}

// addresses are those by which a client, from 0, reaches the nodes.
func (c *cluster) addresses(client int) []string {
	var all []string
	for _, n := range c.nodes {
		all = append(all, n.url(n.links[client].Addr()))
	}
	return all
}

// declare marks the servers as new, with the bounds of the run.
func (c *cluster) declare(ctx context.Context, b bounds) error {
	nodes, err := openNodes(c.addresses(0))
	if err != nil {
		return err
	}
	opts := redlatch.Options{Guard: redlatch.GuardOn, Membership: listName, MaxTTL: b.MaxTTL, TokenWindow: b.Window}
	if c.nodes[0].watched != nil {
		opts.Replicas, opts.ReplicaLag = replicasOfEach, replicaLag
	}
	locks, err := redlatch.New(nodes, &opts)
	if err != nil {
		return err
	}
	defer locks.Close()
	return fresh.Declare(ctx, locks)
}

// locksLeft returns the keys of locks on each node, by its number.
func (c *cluster) locksLeft(ctx context.Context) (map[int][]string, error) {
	left := map[int][]string{}
	for _, n := range c.nodes {
		if n.kind != Redis {
			// By the contract: a sentinel leads to the master.
			names, err := namesHeld(ctx, n.url(n.address()))
			if err != nil {
				return nil, fmt.Errorf("node %d: %w", n.number, err)
			}
			if len(names) > 0 {
				left[n.number] = names
			}
			continue
		}
		text, err := n.at().Ask("KEYS", "*")
		if err != nil {
			return nil, fmt.Errorf("node %d: %w", n.number, err)
		}
		for key := range strings.SplitSeq(text, "\n") {
			if key != "" && !strings.HasPrefix(key, "redlatch:1:") && !strings.HasPrefix(key, ballast) {
				left[n.number] = append(left[n.number], key)
			}
		}
	}
	return left, nil
}

// stop ends all of it.
func (c *cluster) stop() {
	for _, n := range c.nodes {
		for _, link := range n.links {
			link.Close()
		}
		if s := n.at(); s != nil {
			s.Kill()
		}
		if s := n.db(); s != nil {
			s.Stop()
		}
		if n.watched != nil {
			n.watched.stop()
		}
		if n.clock != nil {
			n.clock.Close()
		}
	}
	servertest.CleanUp()
	if c.net != nil {
		c.net.remove()
	}
}
