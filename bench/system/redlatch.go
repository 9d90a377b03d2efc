package system

import (
	"context"
	"fmt"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/fresh"
	"github.com/redlatch/redlatch/redis/direct"
	"github.com/redlatch/redlatch/redis/goredis"
	"github.com/redlatch/redlatch/redis/rueidis"
)

func overSockets(addresses ...string) ([]redlatch.Node, error) { return direct.Nodes(addresses...) }
func overRueidis(addresses ...string) ([]redlatch.Node, error) { return rueidis.Nodes(addresses...) }
func overGoRedis(addresses ...string) ([]redlatch.Node, error) { return goredis.Nodes(addresses...) }

func plainOptions() redlatch.Options { return redlatch.Options{TTL: TTL} }

func guardedOptions() redlatch.Options { return redlatch.Options{TTL: TTL, Guard: redlatch.GuardOn} }

func bareOptions() redlatch.Options {
	return redlatch.Options{TTL: TTL, NoToken: true, Guard: redlatch.GuardOff}
}

type redlatchLocker struct{ client *redlatch.Client }

func openRedlatch(
	nodes func(...string) ([]redlatch.Node, error), options func() redlatch.Options,
) func(context.Context, []string) (Locker, error) {
	return func(_ context.Context, addresses []string) (Locker, error) {
		c, err := newRedlatch(nodes, options(), addresses)
		if err != nil {
			return nil, err
		}
		return redlatchLocker{c}, nil
	}
}

func newRedlatch(nodes func(...string) ([]redlatch.Node, error), options redlatch.Options, addresses []string) (*redlatch.Client, error) {
	list, err := nodes(urls(addresses)...)
	if err != nil {
		return nil, err
	}
	return redlatch.New(list, options)
}

func urls(addresses []string) []string {
	list := make([]string, len(addresses))
	for i, a := range addresses {
		list[i] = "redis://" + a
	}
	return list
}

func (l redlatchLocker) Lock(ctx context.Context, name string) (Held, error) {
	lease, err := l.client.Lock(ctx, name, redlatch.LockOptions{})
	if err != nil {
		return nil, err
	}
	return heldFunc(lease.Release), nil
}

func (l redlatchLocker) Close() { l.client.Close() }

// Prepare declares new servers to be new, as an operator does once: the
// restart guard would quarantine them at first otherwise. A single plain server
// is not guarded by default, and is left alone unless guarded is set.
func Prepare(ctx context.Context, addresses []string, guarded bool) error {
	options := plainOptions()
	if guarded {
		options = guardedOptions()
	} else if len(addresses) < 2 {
		return nil
	}
	c, err := newRedlatch(overSockets, options, addresses)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := fresh.Declare(ctx, c); err != nil {
		return fmt.Errorf("declaring the servers new: %w", err)
	}
	return nil
}
