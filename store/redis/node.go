package redis

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/callerreads"
	"github.com/redlatch/redlatch/node"
)

// A Driver is what a Node needs of a client library.
type Driver interface {
	// Eval runs a script on the server that has the keys, by its digest, and
	// by its source where the server does not know it yet. The reply is an
	// array of strings; a number is returned as an array of one string, its
	// digits. A server's error reply is returned as a *ServerError.
	Eval(ctx context.Context, call Call) ([]string, error)

	// Kind says what is behind the driver: one server, Sentinel or a cluster.
	Kind() Kind

	// Close closes what the driver opened.
	Close() error
}

// Call is one run of a script.
type Call struct {
	Script *Script
	Keys   []string
	Args   []string // and Keys: a Starter must not use them after it has called done

	// Keep marks the extension of a lock that is held. A driver with a pool
	// reserves some connections for extensions, so that other requests cannot
	// use up the connections that holders need.
	Keep bool

	// Batch is what the call has in common with others that may be sent with it
	// as one, and Item what it is among them; nil if it is sent alone. The first
	// key is the name, and no two of one batch may have the same.
	Batch *Batch
	Item  string
}

// Node is a node.Node over a Redis server.
type Node struct {
	driver  Driver
	starter Starter            // nil if the driver is none
	lender  callerreads.Lender // nil if the driver is none
	name    string
	warning atomic.Pointer[string]

	// slotted is set once a server that the driver does not take for a Cluster
	// turned out to be part of one: then each slot has a marker.
	slotted atomic.Bool
	// expected has, for the key of a marker, how that marker began when a
	// grant was last seen: an *expectation.
	expected sync.Map

	// batch is the last Batch that was used.
	batch atomic.Pointer[Batch]

	inbox inbox
	// sentinels is the address, if it is one of Sentinel; else nil.
	sentinels *Address
}

// New returns a node that is called name in errors and logs. The name is part of
// the membership: all clients of the same nodes must use the same name for this
// one, or are refused by guarded nodes.
func New(driver Driver, name string) *Node {
	n := &Node{driver: driver, name: name}
	n.starter, _ = driver.(Starter)
	n.lender, _ = driver.(callerreads.Lender)
	n.inbox.init(driver)
	return n
}

// String returns the node's name.
func (n *Node) String() string { return n.name }

// Close closes what the driver opened.
func (n *Node) Close() error {
	n.inbox.close()
	return n.driver.Close()
}

// GuardsAlone reports whether the address can lead to another server that lacks
// the last writes.
func (n *Node) GuardsAlone() bool { return n.driver.Kind() == Sentinel }

// Identity returns the server's run id, and checks whether the server is fit to
// keep locks.
func (n *Node) Identity(ctx context.Context) (string, time.Time, error) {
	reply, err := n.driver.Eval(ctx, Call{Script: identityScript, Keys: []string{reserved + "identity"}})
	if err != nil {
		return "", time.Time{}, explain(err)
	}
	if len(reply) != 5 {
		return "", time.Time{}, fmt.Errorf("redlatch: unexpected reply %s to the identity script", shown(reply))
	}
	if policy := reply[2]; reply[1] != "0" && policy != "" && policy != "noeviction" {
		n.warning.Store(new("the server may evict keys (maxmemory-policy " + policy +
			"), and with them locks: set maxmemory-policy noeviction"))
	}
	now, err := parseTime(reply[3], reply[4])
	if err != nil {
		return "", time.Time{}, fmt.Errorf("redlatch: unexpected reply %s to the identity script: %w", shown(reply), err)
	}
	return reply[0], now, nil
}

// Warnings returns the dangers for locks that Identity found.
func (n *Node) Warnings() []string {
	if w := n.warning.Load(); w != nil {
		return []string{*w}
	}
	return nil
}

// Do executes one request.
func (n *Node) Do(ctx context.Context, req node.Request) (node.Reply, error) {
	if err := ctx.Err(); err != nil {
		return node.Reply{}, fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	r := run{node: n, req: req, place: n.inbox.place(&req)}
	call, err := r.prepare()
	if err != nil {
		return node.Reply{}, err
	}
	parts, err := n.driver.Eval(ctx, call)
	reply, again, err := r.finish(parts, err)
	if again {
		return n.Do(ctx, req)
	}
	return reply, err
}
