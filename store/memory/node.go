package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/internal/nodestate"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
)

// Options are the settings of a Node. The zero value works.
type Options struct {
	// Name identifies the node in errors and logs. Defaults to a random text.
	Name string

	// Clock is the node's clock. It decides when locks expire and which tokens
	// are valid. It may be wrong. Defaults to time.Now.
	Clock func() time.Time
}

// A Node keeps locks in memory. Any number of clients may use it at the same
// time. Closing one of them does not close it for the others.
type Node struct {
	name  string
	id    string
	clock func() time.Time

	mu        sync.Mutex // guards all fields below
	down      error
	state     nodestate.Server
	listeners map[int]func(node.Wake)
	listened  int // how many listeners there ever were
}

var (
	_ node.Identifier = (*Node)(nil)
	_ node.Waker      = (*Node)(nil)
)

// New returns a node on which nothing is locked.
func New(opts *Options) *Node {
	o := optional.Value(opts)
	n := &Node{
		name:      o.Name,
		id:        rand.Text(),
		clock:     o.Clock,
		listeners: map[int]func(node.Wake){},
	}
	n.name = cmp.Or(n.name, n.id[:8])
	if n.clock == nil {
		n.clock = time.Now
	}
	return n
}

// Nodes returns n nodes, for a client that needs a majority of them.
func Nodes(n int) []node.Node {
	nodes := make([]node.Node, n)
	for i := range nodes {
		nodes[i] = New(&Options{Name: strconv.Itoa(i + 1)})
	}
	return nodes
}

// SetDown makes every request from now on fail with err, without any effect.
// With nil the node is back, with all that it held.
func (n *Node) SetDown(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = err
}

// Drop forgets everything about a name, as a server does that is short of
// memory and evicts keys. It reports whether the name was held.
func (n *Node) Drop(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state.Evict(n.clock(), name)
}

// Do executes one request. Its errors all wrap node.ErrUnsent.
func (n *Node) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if err := nodestate.Check(req); err != nil {
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
	// Checked under the mutex, so that a request that is refused here has no
	// effect later.
	if err := n.unable(ctx); err != nil {
		return node.Reply{}, nil, nil, err
	}
	req.Guard = nil // this node has no marker
	n.state.Silent = len(n.listeners) == 0
	reply, wakes := n.state.Apply(n.clock(), req)
	if len(wakes) == 0 {
		return reply, nil, nil, nil
	}
	return reply, wakes, slices.Collect(maps.Values(n.listeners)), nil
}

// Records reads or writes the records of a name. Its errors all wrap node.ErrUnsent.
func (n *Node) Records(ctx context.Context, req node.RecordsRequest) (node.RecordsReply, error) {
	if err := nodestate.CheckRecords(req); err != nil {
		return node.RecordsReply{}, unsent(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.unable(ctx); err != nil {
		return node.RecordsReply{}, err
	}
	req.Guard = nil // this node has no marker
	return n.state.Records(n.clock(), req), nil
}

// Listen calls f with every notification of the node, for all waiters.
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

// Identity returns a text that no other node has.
func (n *Node) Identity(context.Context) (string, time.Time, error) {
	return "memory:" + n.id, n.clock(), nil
}

// Close does nothing, because other clients may still use the node.
func (n *Node) Close() error { return nil }

// unsent says that a request was not executed.
func unsent(err error) error {
	return fmt.Errorf("redlatch: node in memory: %w (%w)", err, node.ErrUnsent)
}
