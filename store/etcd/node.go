// Package etcd keeps locks in an etcd cluster.
//
//	n, err := etcd.Open("etcd://10.0.0.1+10.0.0.2+10.0.0.3/locks", nil)
//	client, err := redlatch.New([]redlatch.Node{n}, nil)
//
// The cluster is one node: it tolerates failures by itself. It has leases, tokens,
// order, readers, slots and records like every node.
//
// # Time
//
// etcd has no clock that its clients may use. So the clock is observed: each process
// counts what is left of a lock on its own monotonic clock, from when it first saw it
// (see store/casnode). A process that waits gets a crashed holder's lock as soon as the
// lock has expired by its count. A caller that is refused, and may leave before that,
// leaves a timer: a key with a lease that nobody renews. So a job that tries now and
// then, each time from a new process, gets it too. No lock depends on a lease that is
// kept alive: a leader that was stopped, and goes on, acknowledges a keep-alive after
// its successor has begun to count anew.
//
// # What etcd forgets
//
// Nothing that it has acknowledged, as long as most of its members keep their disks. A
// cluster that is restored from a backup forgets, and nothing shows that: stop all
// clients for the longest TTL, and mark the node anew (redlatch init).
package etcd

import (
	"slices"
	"strings"

	"github.com/redlatch/redlatch/internal/optional"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/casnode"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Options are the settings of a Node. The zero value works.
type Options struct {
	// Prefix begins all keys, and has a slash after it. All clients of a lock use
	// the same. Defaults to redlatch.
	Prefix string
	// Poll has waiters poll, and watches nothing. Defaults to false.
	Poll bool
	// Name names the node in errors and in the membership. Defaults to
	// etcd://HOST:PORT+HOST:PORT/PREFIX, without user and password.
	Name string
}

// Node keeps locks in an etcd cluster. It is safe for use by many goroutines and
// clients.
type Node struct {
	*casnode.Node
	store *store
}

// From returns a node over a client that the program has. Close does not close the
// client.
func From(client *clientv3.Client, opts *Options) (*Node, error) {
	if client == nil {
		return nil, &node.ConfigError{Field: "client", Value: "nil", Bound: "an open client"}
	}
	o := optional.Value(opts)
	s := newStore(client.Endpoints(), o)
	s.client = client
	return newNode(s, o), nil
}

func newNode(s *store, o Options) *Node {
	return &Node{casnode.New(s, &casnode.Options{Poll: o.Poll}), s}
}

// newStore returns a store without a client.
func newStore(endpoints []string, o Options) *store {
	prefix := strings.Trim(o.Prefix, "/")
	if prefix == "" {
		prefix = "redlatch"
	}
	if o.Name == "" {
		hosts := slices.Clone(endpoints)
		for i, e := range hosts {
			if _, host, found := strings.Cut(e, "://"); found {
				hosts[i] = host
			}
		}
		slices.Sort(hosts)
		o.Name = "etcd://" + strings.Join(hosts, "+") + "/" + prefix
	}
	s := &store{prefix: prefix + "/", name: o.Name}
	s.leases, s.slots, s.queues = map[string]lease{}, map[string][]string{}, map[string][]*mvccpb.KeyValue{}
	return s
}
