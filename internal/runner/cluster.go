package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/callerreads"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// Config are the settings of a Cluster. All fields are set.
type Config struct {
	Owner          string // the owner that other clients see
	NodeTimeout    time.Duration
	AnyTTL         bool // NodeTimeout applies to every TTL
	FenceRetention time.Duration

	// Parameters has the MaxTTL, Window, Replicas and ReplicaLag with which the client
	// begins, and Fixed which of them the caller set.
	Parameters node.Guard
	Fixed      protocol.Fixed

	Guard         protocol.GuardMode
	Membership    string // name of the membership; empty for the names of the nodes
	AnyMembership bool
	AssumeFresh   bool
	NoHandOver    bool

	Clock Clock
	Log   *slog.Logger

	// Observer may be nil. It is called where an answer is read, and must not
	// block.
	Observer observe.NodeObserver
}

// Cluster is the nodes as one client knows them, and the client's work in
// flight.
type Cluster struct {
	cfg        Config
	clock      Clock
	log        *slog.Logger
	members    []*Member
	ids        identities
	tokens     tokenSource
	rand       randSource
	keeper     keeper
	abandoned  abandonedClaims
	guard      guard
	marking    marking
	epochs     epochs
	inbox      inbox
	queues     queues
	background *background
	parkers    sync.Pool
	callers    callers
	lender     callerreads.Lender // the only node, if callers may read its answers; else nil
	prompt     callerreads.Prompt // the first node, if its callers may call it by themselves; else nil
	starts     protocol.Set       // nodes that need no goroutine: answers may be handled on theirs
	closed     chan struct{}      // closed when Close is done
	closeErr   error              // the result of Close; set before that
}

// NewCluster returns a cluster of the nodes. It sends no request.
func NewCluster(nodes []node.Node, cfg Config) (*Cluster, error) {
	if len(nodes) < 1 || len(nodes) > protocol.MaxNodes {
		return nil, &node.ConfigError{Field: "nodes", Value: fmt.Sprintf("a list of %d", len(nodes)), Bound: fmt.Sprintf("a list of 1 to %d", protocol.MaxNodes)}
	}
	c := &Cluster{
		cfg:        cfg,
		clock:      cfg.Clock,
		log:        cfg.Log,
		ids:        identities{servers: protocol.Servers{}},
		tokens:     tokenSource{clock: cfg.Clock},
		rand:       newRandSource(cfg.Clock),
		background: newBackground(),
		closed:     make(chan struct{}),
	}
	c.keeper.init(c)
	c.callers = callers{make(chan *flight), c.closed}
	seen := map[string]int{}
	for i, n := range nodes {
		field := fmt.Sprintf("nodes[%d]", i)
		if n == nil {
			return nil, &node.ConfigError{Field: field, Value: nil, Bound: "a node"}
		}
		name := n.String()
		if j, twice := seen[name]; twice {
			return nil, &node.ConfigError{Field: field, Value: name, Bound: fmt.Sprintf("another node than nodes[%d]", j),
				Problem: "duplicate node " + name}
		}
		seen[name] = i
		m := &Member{node: n, name: name, index: i, cluster: c}
		if o, ok := n.(node.Observing); ok {
			m.clockless.Store(o.Clockless())
		}
		if s, ok := n.(node.Starter); ok && s.Starts() {
			m.starter = s
			c.starts |= protocol.Of(i)
		}
		c.members = append(c.members, m)
	}
	if c.prompt, _ = nodes[0].(callerreads.Prompt); c.starts != 0 && len(nodes) == 1 {
		c.lender, _ = nodes[0].(callerreads.Lender)
	}
	if err := c.guard.init(c, nodes); err != nil {
		return nil, err
	}
	return c, nil
}

// Identify asks all nodes at once which server they are. Only a server that is
// found twice is an error: a node that does not answer now is asked again
// before its first request.
func (c *Cluster) Identify() error {
	// No longer than a frozen minority may delay a round.
	ctx, cancel := context.WithTimeout(context.Background(), c.patience())
	defer cancel()
	errs := make(chan error, len(c.members))
	for _, m := range c.members {
		go func() { errs <- c.ids.check(ctx, m) }()
	}
	late := time.After(c.patience()) // a driver may ignore ctx
	for range c.members {
		select {
		case err := <-errs:
			if errors.Is(err, node.ErrConfig) {
				return err
			}
		case <-late:
			return nil
		}
	}
	return nil
}

// Listen begins to listen to the nodes' notifications.
func (c *Cluster) Listen() { c.inbox.listen(c) }

// Start reports whether work may begin that Close is to wait for. Done ends it.
func (c *Cluster) Start() bool { return c.background.start() }

// Done ends what Start began.
func (c *Cluster) Done() { c.background.end() }

// Close releases the claims that are held by calling release, waits for the
// work in flight, and closes the nodes. If nodes do not answer, it takes two
// node time limits and a tenth of a second. Every call returns when that is
// done, with the same error.
func (c *Cluster) Close(release func(held []*Claim)) error {
	if !c.background.close() {
		<-c.closed
		return c.closeErr
	}
	patience := time.NewTimer(2*c.cfg.NodeTimeout + 100*time.Millisecond)
	defer patience.Stop()
	release(c.keeper.close())
	idle := c.background.wait(patience.C)
	for _, m := range c.members {
		m.logUnconfirmed(idle)
	}
	c.inbox.close()
	var errs []error
	for _, m := range c.members {
		errs = append(errs, m.node.Close())
	}
	c.closeErr = errors.Join(errs...)
	close(c.closed)
	return c.closeErr
}

// Closing reports whether Close has begun.
func (c *Cluster) Closing() bool {
	return c.background.closed.Load()
}

// isDone reports whether Close has returned: the nodes are closed.
func (c *Cluster) isDone() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// Members returns the nodes, in the order in which they were passed to the
// client.
func (c *Cluster) Members() []*Member { return c.members }

// Clock returns the client's clock.
func (c *Cluster) Clock() Clock { return c.clock }

// Log returns the client's logger.
func (c *Cluster) Log() *slog.Logger { return c.log }

// NodeTimeout returns how long a node may take to answer.
func (c *Cluster) NodeTimeout() time.Duration { return c.cfg.NodeTimeout }

// say logs. A logger may block, so replies that a node's own goroutine handles are
// logged on another one.
func (c *Cluster) say(level slog.Level, text string, args ...any) {
	log := func() { c.log.Log(context.Background(), level, text, args...) }
	if c.starts != 0 {
		c.Go(log)
	} else {
		log()
	}
}

// newValue returns the value of a new claim.
func (c *Cluster) newValue() string {
	var random [16]byte
	c.rand.value(&random)
	return protocol.NewValue(random, c.cfg.Owner)
}
