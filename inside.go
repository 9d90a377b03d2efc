package redlatch

import (
	"github.com/redlatch/redlatch/internal/inside"
	"github.com/redlatch/redlatch/internal/runner"
)

// Package admin needs the inside of a client, and tests a clock. Neither is for
// lock users.
func init() {
	of := func(c *Client) inside.Client {
		return inside.Client{
			Cluster: c.cluster, Prefix: c.opts.Prefix, AnyMembership: c.opts.AnyMembership,
			CompletedRetention: c.opts.CompletedRetention, Observer: c.opts.Observer, Key: c.key,
		}
	}
	inside.Of = func(client any) inside.Client { return of(client.(*Client)) }
	inside.Assemble = func(nodes []Node, opts any) (inside.Client, error) {
		c, err := assemble(nodes, opts.(Options))
		if err != nil {
			return inside.Client{}, err
		}
		return of(c), nil
	}
	inside.SetClock = func(opts any, clock runner.Clock) { opts.(*Options).clock = clock }
}
