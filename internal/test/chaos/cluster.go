//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/clientaccess"
	"github.com/redlatch/redlatch/internal/redisproc"
	"github.com/redlatch/redlatch/internal/test/clockshim"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/servertest"
	contract "github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/node/registry"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// cluster is the servers of a run and the ways to them.
type cluster struct {
	dir     string
	program string
	shim    string // the clock shim's library; empty where there is none
	clients int
	all     []*node // every one that there was
	nodes   []*node // the membership, in the order of its list
	removed *node   // the one that left it last

	generation int // of the membership, from 0
}

// node is one address of the list: a server, which may be replaced by another,
// and a proxy to it for each client.
type node struct {
	number int // from 1
	kind   ServerKind
	in     *cluster
	links  []*servertest.Proxy // by client, and of a client by the server's addresses
	clock  *clockshim.Clock    // nil where the clock cannot be moved

	// The nemesis knows that it has a fault, and when it may grant again.
	struck bool
	out    time.Time

	viewer contract.Node // looks for locks that are left; nil at first

	mu     sync.Mutex // guards server
	server server
	lives  int // how many Redis servers it has had
}

// server is what a node leads to: a Redis server, a database, a sentinel with its
// servers, or a cluster.
type server interface {
	Start() error // with the data that it has
	Stop()
	Addr() string // several have a plus between them
	// URL is the node's address, by the server's address or that of a proxy.
	URL(address string) string
}

// redisServer is a server of Redis or Valkey.
type redisServer struct{ *redisproc.Server }

func (s redisServer) Start() error              { return s.Server.Start(durable()...) }
func (s redisServer) Stop()                     { s.Kill() }
func (s redisServer) URL(address string) string { return "redis://" + address }

// Ask asks the server, again if a busy machine has it time out: whatever is asked
// may be repeated.
func (s redisServer) Ask(args ...string) (reply string, err error) {
	for range 5 {
		var late net.Error
		if reply, err = s.Server.Ask(args...); !errors.As(err, &late) || !late.Timeout() {
			break
		}
	}
	return reply, err
}

// order is Ask for what has no reply of interest.
func (s redisServer) order(args ...string) error {
	_, err := s.Ask(args...)
	return err
}

// durable are the settings with which a server keeps all that it acknowledged,
// unless its files are tampered with: kill -9 leaves what is in the page cache.
// With everysec, a server whose last sync is still in progress acknowledges what it
// has not even written.
func durable() []string {
	return []string{"--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0", "--repl-diskless-sync-delay", "0"}
}

// start starts a node of each kind for so many clients.
func (c *cluster) start(kinds []ServerKind, clients int) error {
	c.clients = clients
	for _, kind := range kinds {
		n, err := c.add(kind)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
	}
	return nil
}

// add starts a node, which is no member yet.
func (c *cluster) add(kind ServerKind) (_ *node, err error) {
	n := &node{number: len(c.all) + 1, kind: kind, in: c}
	c.all = append(c.all, n)
	if c.shim != "" && slices.Contains(edgy, kind) {
		if n.clock, err = clockshim.New(filepath.Join(c.dir, "clock"+strconv.Itoa(n.number))); err != nil {
			return nil, err
		}
		if len(c.nodes) > 0 && c.nodes[0].clock != nil {
			n.clock.Set(c.nodes[0].clock.Off(), 0)
		}
	}
	n.server = n.newServer()
	if err := n.server.Start(); err != nil {
		return nil, err
	}
	for range c.clients {
		for address := range strings.SplitSeq(n.server.Addr(), "+") {
			link, err := servertest.OpenProxy(address)
			if err != nil {
				return nil, err
			}
			n.links = append(n.links, link)
		}
	}
	return n, nil
}

// newServer returns a server of the node's kind.
func (n *node) newServer() server {
	switch n.kind {
	case Postgres, MariaDB, MySQL:
		s := n.kind.database()
		if n.clock != nil {
			s.Env = n.clock.Env(n.in.shim)
		}
		return s
	case Sentinel:
		return &watched{in: n}
	case Etcd, ZooKeeper:
		return &ensemble{kind: n.kind}
	}
	return n.newRedis()
}

// newRedis returns a place for a Redis server of this node, on a port and in a
// folder of its own.
func (n *node) newRedis() redisServer {
	n.lives++
	s := redisServer{&redisproc.Server{Program: n.in.program, Dir: filepath.Join(n.in.dir, fmt.Sprintf("n%d.%d", n.number, n.lives))}}
	if n.clock != nil {
		s.Env = n.clock.Env(n.in.shim)
	}
	return s
}

// current returns the server that the node is at the moment.
func (n *node) current() server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server
}

// process returns it as a process.
func (n *node) process() process { return n.current().(process) }

// at returns it as a Redis server.
func (n *node) at() redisServer { return n.current().(redisServer) }

// become has another server be the node: every way to the node leads there.
func (n *node) become(s server) {
	n.mu.Lock()
	n.server = s
	n.mu.Unlock()
	for _, link := range n.links {
		link.LeadTo(s.Addr())
		link.Cut()
	}
}

// linksOf are the ways of a client, from 0.
func (n *node) linksOf(client int) []*servertest.Proxy {
	each := strings.Count(n.current().Addr(), "+") + 1
	return n.links[client*each : (client+1)*each]
}

// addresses are those by which a client, from 0, reaches the nodes of a list.
func addresses(list []*node, client int) string {
	var all []string
	for _, n := range list {
		all = append(all, n.current().URL(strings.Join(servertest.Hosts(n.linksOf(client)), "+")))
	}
	return strings.Join(all, ",")
}

// membership is the name of a membership, which every client reaches by addresses
// of its own.
func membership(generation int) string { return fmt.Sprint("torture.", generation) }

// open returns a client of the present membership, with some nodes, and the nodes
// as it has them.
func (c *cluster) open(b bounds, list []*node) (*redlatch.Client, []redlatch.Node, error) {
	opts := redlatch.Options{Guard: redlatch.GuardOn, Cluster: redlatch.Cluster{Membership: membership(c.generation), MaxTTL: b.MaxTTL}}
	clientaccess.SetWindow(&opts, b.Window)
	if list[0].kind == Sentinel {
		opts.Replicas = replicasOfEach
	}
	var nodes []redlatch.Node
	for _, n := range list {
		opened, err := n.open(strings.Join(servertest.Hosts(n.linksOf(0)), "+"))
		if err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, opened)
	}
	locks, err := redlatch.New(nodes, &opts)
	return locks, nodes, err
}

// open returns the node for a client, by the server's address or that of a proxy.
func (n *node) open(address string) (contract.Node, error) {
	url := n.current().URL(address)
	if n.kind == Redis {
		return direct.Open(url, nil)
	}
	return registry.Open(url)
}

// declare marks the servers as new, with the bounds of the run.
func (c *cluster) declare(ctx context.Context, b bounds) error {
	locks, _, err := c.open(b, c.nodes)
	if err != nil {
		return err
	}
	defer locks.Close()
	return fresh.Declare(ctx, locks)
}

// locksLeft returns the locks that are held on each node, by its number.
func (c *cluster) locksLeft(ctx context.Context) (map[int][]string, error) {
	left := map[int][]string{}
	for _, n := range c.nodes {
		held, err := n.locksLeft(ctx)
		if err != nil {
			return nil, fmt.Errorf("node %d: %w", n.number, err)
		}
		if len(held) > 0 {
			left[n.number] = held
		}
	}
	return left, nil
}

func (n *node) locksLeft(ctx context.Context) (held []string, err error) {
	if n.viewer == nil {
		if n.viewer, err = n.open(n.current().Addr()); err != nil {
			return nil, err
		}
	}
	err = n.viewer.(contract.Lister).List(ctx, "", func(l contract.Listing) {
		if l.Reply.Status == contract.Held {
			held = append(held, l.Name)
		}
	})
	if err != nil || !slices.Contains(ensembles, n.kind) {
		return held, err
	}
	// There a lock's time is over when one process has observed that: a list observes
	// nothing, an inspection does.
	return slices.DeleteFunc(held, func(name string) bool {
		r, e := n.viewer.Do(ctx, contract.Request{Op: contract.OpInspect, Name: name})
		err = errors.Join(err, e)
		return e == nil && r.Status != contract.Held
	}), err
}

// stop ends all of it.
func (c *cluster) stop() {
	for _, n := range c.all {
		for _, link := range n.links {
			link.Close()
		}
		if n.viewer != nil {
			n.viewer.Close()
		}
		if s := n.current(); s != nil {
			s.Stop()
		}
		if n.clock != nil {
			n.clock.Close()
		}
	}
	servertest.CleanUp()
}
