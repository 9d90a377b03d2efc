package redlatch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/clientaccess"
	"github.com/redlatch/redlatch/internal/holders"
	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// A Client acquires locks on one node, or on a majority of several. It is safe
// for use by many goroutines. A process needs one for each set of nodes.
type Client struct {
	carrier
	opts    Options
	cluster *runner.Cluster
	told    atomic.Int64 // when the quarantine ends that was logged last, on the client's clock
}

// New returns a client for the given nodes. The client owns them: Close closes
// them, and New closes them if it returns an error. New asks the nodes for
// their identity, so that a server that is listed twice is refused. A node that
// cannot be reached is no error here.
func New(nodes []Node, opts *Options) (*Client, error) {
	o := optional.Value(opts)
	c, err := assemble(nodes, o)
	if clientaccess.Idle(&o.settings) {
		return c, err
	}
	if err == nil {
		err = c.cluster.Identify()
	}
	if err != nil {
		for _, n := range nodes {
			if n != nil {
				n.Close() // err says what went wrong
			}
		}
		return nil, err
	}
	c.cluster.Listen()
	return c, nil
}

// assemble makes a client without sending a request to the nodes.
func assemble(nodes []Node, opts Options) (*Client, error) {
	given := opts
	for _, n := range nodes {
		if slow, ok := n.(node.Slow); ok && given.NodeTimeout == 0 {
			opts.NodeTimeout = max(opts.NodeTimeout, slow.TimeLimit())
		}
	}
	limitSet := opts.NodeTimeout != 0
	if !limitSet && opts.TTL > 0 {
		opts.NodeTimeout = protocol.LimitFor(opts.TTL)
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	nodeObserver, _ := opts.Observer.(observe.NodeObserver)
	lag := replicaLag
	if opts.Replicas == 0 {
		lag = 0
	}
	cluster, err := runner.NewCluster(nodes, runner.Config{
		Owner:          ownerName(opts.Label),
		NodeTimeout:    opts.NodeTimeout,
		AnyTTL:         limitSet,
		FenceRetention: opts.FenceRetention,
		Parameters:     node.Guard{MaxTTL: opts.MaxTTL, Window: clientaccess.Window(&opts.settings), Replicas: opts.Replicas, ReplicaLag: lag},
		Fixed:          protocol.Fixed{MaxTTL: given.MaxTTL != 0, Replicas: given.Replicas != 0},
		Guard:          protocol.GuardMode(opts.Guard),
		Membership:     opts.Membership,
		AnyMembership:  opts.AnyMembership,
		AssumeFresh:    opts.AssumeFresh,
		NoHandOver:     clientaccess.NoHandOver(&opts.settings),
		Clock:          clientaccess.Clock(&opts.settings),
		Log:            opts.Logger,
		Observer:       nodeObserver,
	})
	if err != nil {
		return nil, err
	}
	if opts.TTL != 0 && !cluster.Guarded() { // otherwise the markers decide, at the first lock
		if err := checkDuration("TTL", opts.TTL, minTTL, opts.MaxTTL); err != nil {
			return nil, err
		}
	}
	c := &Client{opts: opts, cluster: cluster}
	c.carrier = clientaccess.Carry(clientaccess.Client{
		Cluster: cluster, Prefix: opts.Prefix, AnyMembership: opts.AnyMembership,
		CompletedRetention: opts.CompletedRetention, Observer: opts.Observer, Key: c.key,
	})
	return c, nil
}

// Close releases all leases that are still held, concurrently, waits for
// requests in flight, and closes the nodes. If nodes do not answer, it takes
// two node time limits and a tenth of a second. What they have not confirmed by
// then is logged; locks that are left there expire after their TTL. The leases'
// contexts end with ErrReleased. Callers that wait for a lock get ErrClosed.
//
// Close can be called again, and from several goroutines: each call returns
// when the client is closed, with the same error. It must not be called from an
// Observer.
func (c *Client) Close() error {
	return c.cluster.Close(func(held []*runner.Claim) {
		var all sync.WaitGroup
		for _, cl := range held {
			all.Go(func() {
				cl.Lock()
				l := (*Lease)(cl.Owner().(*holding))
				l.closing = true
				cl.Unlock()
				if err := l.free(context.Background()); err != nil && !errors.Is(err, ErrLost) {
					l.warnNotFreed(err)
				}
			})
		}
		all.Wait()
	})
}

// Nodes returns what the client knows about each of its nodes, in their order.
// It sends no request.
func (c *Client) Nodes() []observe.NodeHealth { return c.cluster.Health() }

// key returns the key of a lock, or an error if the name is not valid.
func (c *Client) key(name string) (string, error) {
	if name == "" {
		return "", &ConfigError{Field: "name", Value: name,
			Bound: fmt.Sprintf("1 to %d bytes of UTF-8 with no control characters", maxNameLen-len(c.opts.Prefix))}
	}
	if err := checkText("name", name, 1, maxNameLen-len(c.opts.Prefix)); err != nil {
		return "", err
	}
	return c.opts.Prefix + name, nil
}

// ownerName returns host/pid/label.
func ownerName(label string) string {
	host, err := os.Hostname()
	if err != nil || checkText("host", host, 1, 255) != nil {
		host = "unknown"
	}
	if label == "" {
		label = strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
		if checkText("label", label, 1, maxLabelLen) != nil {
			label = "unknown"
		}
	}
	return host + "/" + strconv.Itoa(os.Getpid()) + "/" + label
}

// Package admin needs the inside of a client, and tests a clock. Neither is for
// lock users, so that the names of what is embedded are not exported.
type (
	carrier  = clientaccess.Carrier
	settings = clientaccess.Settings
)

const (
	// MaxNodes is the highest number of nodes that a client accepts.
	MaxNodes = protocol.MaxNodes

	// OutagePatience is how long Lock waits for a quorum of nodes if the caller set no
	// limit: neither Wait nor a deadline of its context. Lock asks at least three times,
	// because a single round of slow nodes can take as long.
	OutagePatience = protocol.OutagePatience

	// NoWait as LockOptions.Wait asks the nodes once, and waits neither for holders
	// nor for servers.
	NoWait = -1

	// NoReplicas as Cluster.Replicas states that no replica is required.
	NoReplicas = -1

	// GuardAuto is GuardOn for several nodes, for a master that Sentinel manages,
	// and for a database, etcd or ZooKeeper, if the nodes can be guarded. Otherwise
	// it is GuardOff: during the quarantine of a single plain Redis server no other
	// node could grant locks.
	GuardAuto GuardMode = 0
	// GuardOn writes a marker to every node, and quarantines a node that has
	// lost it.
	GuardOn GuardMode = 1
	// GuardOff writes no markers and ignores quarantines. A node that restarts
	// without its data can then grant a lock that another client still holds. A
	// marker of another membership is still refused, unless AnyMembership is
	// set.
	GuardOff GuardMode = 2

	// KindLease is a lease of this package.
	KindLease HolderKind = "lease"
	// KindPlain is a string that a foreign Redlock client set.
	KindPlain HolderKind = "plain"
	// KindForeign is a key that is no lock: it is not a string.
	KindForeign HolderKind = "foreign"
	// KindReserved is a waiter that was notified and may take the lock.
	KindReserved HolderKind = "reserved"
)

// GuardMode says whether nodes that may have forgotten locks are quarantined.
type GuardMode uint8

// HolderKind says what sort of client holds a lock.
type HolderKind = holders.Kind

// Node is one independent store that can grant a lock. Package node, which is
// for authors of nodes, defines it.
type Node = node.Node

// Token is the fencing number of a lease. Of two leases on one name, the one
// whose attempt began after the other was acquired has the higher token. Pass
// it to the resource that the lock protects, and let the resource refuse a
// token lower than the highest it has seen. As text it has 20 digits, which
// compare like the numbers.
type Token = node.Token

// ConfigError says which setting is not valid.
type ConfigError = node.ConfigError
