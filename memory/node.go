package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/node"
)

// Options are the settings of a Node. The zero value works.
type Options struct {
	// Name tells the node from others in errors and logs. Defaults to a
	// random text.
	Name string

	// Clock is the node's clock, by which locks expire and tokens are
	// judged. It may be wrong. Defaults to time.Now.
	Clock func() time.Time
}

// A Node keeps locks in memory. It may be given to any number of clients at
// the same time, and closing one of them leaves it to the others.
type Node struct {
	name  string
	id    string
	clock func() time.Time

	mu        sync.Mutex
	down      error
	names     map[string]*entry
	listeners map[int]func(node.Wake)
	listened  int // how many there ever were
	// sweepAt is the number of names at which the dead ones are looked for.
	sweepAt int
}

var (
	_ node.Prompt     = (*Node)(nil)
	_ node.Identifier = (*Node)(nil)
	_ node.Waker      = (*Node)(nil)
)

// New returns a node on which nothing is locked.
func New(o Options) *Node {
	n := &Node{
		name:  o.Name,
		id:    rand.Text(),
		clock: o.Clock,
		names: map[string]*entry{},

		listeners: map[int]func(node.Wake){},

		sweepAt: leastSweep,
	}
	if n.name == "" {
		n.name = n.id[:8]
	}
	if n.clock == nil {
		n.clock = time.Now
	}
	return n
}

// Nodes returns n nodes for a client that asks a majority of them.
func Nodes(n int) []node.Node {
	nodes := make([]node.Node, n)
	for i := range nodes {
		nodes[i] = New(Options{Name: strconv.Itoa(i + 1)})
	}
	return nodes
}

// SetDown has every request from now on fail with err, without any effect;
// nil brings the node back, with all that it held.
func (n *Node) SetDown(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = err
}

// Do carries out one request. Its errors all wrap node.ErrUnsent.
func (n *Node) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if err := check(req); err != nil {
		return node.Reply{}, unsent(err)
	}
	reply, wakes, listeners, err := n.do(ctx, req)
	for _, w := range wakes {
		for _, f := range listeners {
			f(w)
		}
	}
	return reply, err
}

func (n *Node) do(ctx context.Context, req node.Request) (node.Reply, []node.Wake, []func(node.Wake), error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	// Looked at under the mutex, so that what was refused here can have no
	// effect later.
	if err := ctx.Err(); err != nil {
		return node.Reply{}, nil, nil, unsent(err)
	}
	if n.down != nil {
		return node.Reply{}, nil, nil, unsent(n.down)
	}
	reply, wakes := n.carryOut(req)
	if len(wakes) == 0 {
		return reply, nil, nil, nil
	}
	return reply, wakes, slices.Collect(maps.Values(n.listeners)), nil
}

// Listen has f called with every wake of the node, whoever it is for.
func (n *Node) Listen(f func(node.Wake)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listened++
	id := n.listened
	n.listeners[id] = f
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.listeners, id)
	}
}

// String returns "memory:" and the node's name.
func (n *Node) String() string { return "memory:" + n.name }

// ReturnsByDeadline reports true: a node in memory never waits.
func (n *Node) ReturnsByDeadline() bool { return true }

// Identity returns a text that no other node has.
func (n *Node) Identity(context.Context) (string, time.Time, error) {
	return "memory:" + n.id, n.clock(), nil
}

// Close does nothing: the node stays as it is for the other clients it was
// given to.
func (n *Node) Close() error { return nil }

// check refuses a request that could only be carried out wrongly.
func check(req node.Request) error {
	switch {
	case req.Mode != node.Exclusive:
		return fmt.Errorf("lock mode %d is unknown", req.Mode)
	case req.Op < node.OpAcquire || req.Op > node.OpOffer && req.Op != node.OpBreak:
		return fmt.Errorf("operation %d is unknown", req.Op)
	case req.Token > node.MaxToken:
		return fmt.Errorf("token %d is above the largest, %d", uint64(req.Token), uint64(node.MaxToken))
	case req.TTL <= 0 && (req.Op == node.OpAcquire || req.Op == node.OpExtend || req.Op == node.OpRepair):
		return fmt.Errorf("time to live is %v: it must be positive", req.TTL)
	}
	return nil
}

func unsent(err error) error {
	return fmt.Errorf("redlatch: node in memory: %w (%w)", err, node.ErrUnsent)
}
