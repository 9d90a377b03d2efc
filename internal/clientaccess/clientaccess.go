// Package clientaccess gives package admin the inside of a client, and tests its
// clock, so that package redlatch need not export them. Client and Options of
// package redlatch embed a type of this package each: its methods are not
// exported, so that only the functions here can call them.
package clientaccess

import (
	"time"

	"github.com/redlatch/redlatch/internal/runner"
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

// Carrier is what a redlatch.Client embeds.
type Carrier struct{ client Client }

// Carry returns a Carrier.
func Carry(c Client) Carrier { return Carrier{c} }

func (c *Carrier) inside() Client { return c.client }

// Of returns the inside of a *redlatch.Client.
func Of(client interface{ inside() Client }) Client { return client.inside() }

// Settings are what redlatch.Options embed: those that users do not set.
type Settings struct {
	clock  runner.Clock
	idle   bool
	alone  bool
	window time.Duration
}

func (s *Settings) settings() *Settings { return s }

// Options are *redlatch.Options, or their Settings.
type Options interface{ settings() *Settings }

// SetClock gives a client a clock of its own. It is for tests. A clock can also
// have a method RandSource that returns a rand.Source of math/rand/v2: the client
// then draws its random values and delays from it, as simulations need, which must
// be repeatable.
func SetClock(opts Options, clock runner.Clock) { opts.settings().clock = clock }

// Clock returns the clock that was set; nil if none was.
func Clock(opts Options) runner.Clock { return opts.settings().clock }

// SetIdle stops New from asking the nodes anything: a server that is listed twice is not
// refused. The nodes stay open if New returns an error.
func SetIdle(opts Options) { opts.settings().idle = true }

// Idle reports whether SetIdle was called.
func Idle(opts Options) bool { return opts.settings().idle }

// SetNoHandOver makes every caller ask the nodes for the lock, also if another one
// of the client releases it. It is for tests and the bench.
func SetNoHandOver(opts Options) { opts.settings().alone = true }

// NoHandOver reports whether SetNoHandOver was called.
func NoHandOver(opts Options) bool { return opts.settings().alone }

// SetWindow sets how far a token may differ from a node's clock. It is for tests:
// users set MaxTTL, from which it follows.
func SetWindow(opts Options, window time.Duration) { opts.settings().window = window }

// Window returns the window; 0 if none was set.
func Window(opts Options) time.Duration { return opts.settings().window }
