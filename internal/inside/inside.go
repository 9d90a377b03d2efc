// Package inside gives package admin the inside of a client, and tests its
// clock, so that package redlatch need not export them.
package inside

import (
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

// Package redlatch sets these when it is initialized: their types are its own.
var (
	// Of returns the inside of a *redlatch.Client.
	Of func(client any) Client
	// Assemble returns that of a client of the nodes, with redlatch.Options,
	// that asked them nothing: a server that is listed twice is not refused. The
	// nodes stay open.
	Assemble func(nodes []node.Node, opts any) (Client, error)
	// SetClock has a client with these *redlatch.Options use a clock of its own.
	// It is for tests. A clock can also have a method RandSource that returns a
	// rand.Source of math/rand/v2: the client then draws its random values and
	// delays from it, as simulations need, which must be repeatable.
	SetClock func(opts any, clock runner.Clock)
)
