package main

import (
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
)

// longestTTL is the longest TTL of a lock where no marker limits it: the
// maximum of the library.
const longestTTL = 30 * 24 * time.Hour

// client returns a client for the nodes that the flags name.
func (f *nodeFlags) client(opts redlatch.Options) (*redlatch.Client, error) {
	nodes, err := f.open()
	if err != nil {
		return nil, err
	}
	return f.clientOf(nodes, opts)
}

// clientOf is client for nodes that are open already. The client owns them from
// then on.
func (f *nodeFlags) clientOf(nodes []redlatch.Node, opts redlatch.Options) (*redlatch.Client, error) {
	f.apply(&opts)
	if !guarded(nodes, opts.Guard) {
		// No quarantine has to last as long as the longest lock.
		opts.MaxTTL = longestTTL
	}
	client, err := redlatch.New(nodes, &opts)
	if err != nil {
		return nil, err
	}
	return client, nil
}

// guarded reports whether a client of these nodes follows their markers.
func guarded(nodes []redlatch.Node, mode redlatch.GuardMode) bool {
	alone := len(nodes) > 1
	for _, n := range nodes {
		g, ok := n.(node.Guarded)
		if !ok {
			return mode == redlatch.GuardOn
		}
		alone = alone || g.GuardsAlone()
	}
	return mode == redlatch.GuardOn || mode == redlatch.GuardAuto && alone
}
