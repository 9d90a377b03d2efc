package redlatch

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/clientaccess"
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
