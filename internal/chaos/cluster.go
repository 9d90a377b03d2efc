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
	"github.com/redlatch/redlatch/internal/faultproxy"
	"github.com/redlatch/redlatch/internal/fresh"
	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/redis/rueidis"
)

// cluster is the servers of a run and the ways to them.
type cluster struct {
	dir     string
	program string
	net     *namespace // nil where the servers share our network
	shim    string     // the clock shim's library; empty where there is none
	nodes   []*node

	mu    sync.Mutex
	ports map[int]bool // those that were handed out
}

// node is one address of the list: a server, which may be replaced by another,
// and a proxy to it for each client.
type node struct {
	number int // from 1
	in     *cluster
	links  []*faultproxy.Proxy // by client
	clock  nodeClock           // nil where the clock cannot be moved

	mu     sync.Mutex
	server *redisproc.Server
	lives  int // how many servers it has had
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

// start starts n nodes for so many clients, and declares them new.
func (c *cluster) start(ctx context.Context, n, clients int, b bounds) error {
	c.ports = map[int]bool{}
	for i := range n {
		nd := &node{number: i + 1, in: c}
		if c.shim != "" {
			clock, err := newClock(filepath.Join(c.dir, "clock"+strconv.Itoa(i+1)))
			if err != nil {
				return err
			}
			nd.clock = clock
		}
		c.nodes = append(c.nodes, nd)
		server, err := nd.newServer()
		if err != nil {
			return err
		}
		nd.server = server
		if err := server.Start(durable()...); err != nil {
			return err
		}
		for range clients {
			link, err := faultproxy.New(nd.address())
			if err != nil {
				return err
			}
			nd.links = append(nd.links, link)
		}
	}
	return c.declare(ctx, b)
}

// newServer returns a place for a server of this node, on a port and in a
// folder of its own.
func (n *node) newServer() (*redisproc.Server, error) {
	port, err := n.in.freePort()
	if err != nil {
		return nil, err
	}
	n.lives++
	s := &redisproc.Server{Program: n.in.program, Bind: []string{"127.0.0.1"}, Port: port,
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

// freePort returns a port that nobody listens on, neither here nor, since they
// were never handed out twice, where the servers are.
func (c *cluster) freePort() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("there is no free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if !c.ports[port] {
			c.ports[port] = true
			return port, nil
		}
	}
}

// address is where the proxies reach the node's server.
func (n *node) address() string {
	host := "127.0.0.1"
	if n.in.net != nil {
		host = n.in.net.address
	}
	return net.JoinHostPort(host, strconv.Itoa(n.at().Port))
}

// at returns the server that the node is at the moment.
func (n *node) at() *redisproc.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server
}

// become has another server be the node: every way to the node leads there.
func (n *node) become(s *redisproc.Server) {
	n.mu.Lock()
	n.server = s
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
		all = append(all, n.links[client].URL())
	}
	return all
}

// declare marks the servers as new, with the bounds of the run.
func (c *cluster) declare(ctx context.Context, b bounds) error {
	nodes, err := rueidis.Nodes(c.addresses(0)...)
	if err != nil {
		return err
	}
	locks, err := redlatch.New(nodes, redlatch.Options{
		Guard: redlatch.GuardOn, NodeList: listName, MaxTTL: b.MaxTTL, TokenWindow: b.Window})
	if err != nil {
		return err
	}
	defer locks.Close()
	return fresh.Declare(ctx, locks)
}

// locksLeft returns the keys of locks on each node, by its number.
func (c *cluster) locksLeft() (map[int][]string, error) {
	left := map[int][]string{}
	for _, n := range c.nodes {
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
		if n.clock != nil {
			n.clock.Close()
		}
	}
	if c.net != nil {
		c.net.remove()
	}
}
