// Package inside gives package admin the inside of a client, so that package
// redlatch need not export it.
package inside

import (
	"context"
	"time"

	"github.com/redlatch/redlatch/internal/runner"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/observe"
)

// Client is what is inside a redlatch.Client.
type Client struct {
	Cluster            *runner.Cluster
	Prefix             string
	AnyMembership      bool
	CompletedRetention time.Duration
	Observer           observe.Observer // nil for none
	// Key returns the key of a lock, or an error if the name cannot be one.
	Key func(name string) (string, error)
}

// Package redlatch sets these when it is initialized.
var (
	// Of returns the inside of a *redlatch.Client.
	Of func(client any) Client
	// Assemble returns that of a client of the nodes, with redlatch.Options,
	// that asked them nothing: a server that is listed twice is not refused. The
	// nodes stay open.
	Assemble func(nodes []node.Node, opts any) (Client, error)
	// Holders returns those whom nodes name as having a lock: []redlatch.Holder.
	Holders func(results []node.Result) any
	// MarkError returns an error if a node could not be marked.
	MarkError func(states []runner.NodeState) error
	// Ended is the error of a caller whose context ended.
	Ended func(ctx context.Context) error
)
