package redlatch

import (
	"context"

	"github.com/redlatch/redlatch/internal/inside"
	"github.com/redlatch/redlatch/node"
)

// Package admin needs the inside of a client, which is not for lock users.
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
	inside.Holders = func(results []node.Result) any { return holdersOf(results) }
	inside.MarkError = markError
	inside.Ended = func(ctx context.Context) error { return endedError(ctx, nil) }
}
