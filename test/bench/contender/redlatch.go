package contender

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/fresh"
	_ "github.com/redlatch/redlatch/store/etcd"
	_ "github.com/redlatch/redlatch/store/mysql"
	_ "github.com/redlatch/redlatch/store/postgres"
	_ "github.com/redlatch/redlatch/store/zookeeper"
	"github.com/redlatch/redlatch/test/bench/server"
)

// URL returns the addresses of nodes, as a user has them. Servers of a cluster are one.
func URL(k server.Kind, addresses []string) string {
	switch k {
	case server.RedisKind:
		return "redis://" + strings.Join(addresses, ",redis://")
	case server.Postgres:
		return postgresURL(addresses[0])
	case server.MariaDB:
		return "mysql://root@" + addresses[0] + "/test"
	}
	return string(k) + "://" + strings.Join(addresses, "+")
}

var (
	plain   = redlatch.Options{TTL: TTL}
	guarded = redlatch.Options{TTL: 30 * time.Second, Guard: redlatch.GuardOn}
)

// openRedlatch opens a client as a user does. parameters are added to the address.
func openRedlatch(k server.Kind, parameters string, options redlatch.Options) func(context.Context, []string) (*Locker, error) {
	return func(_ context.Context, addresses []string) (*Locker, error) {
		return lockerOf(redlatch.Open(URL(k, addresses)+parameters, &options))
	}
}

// openOver opens a client over another driver of Redis.
func openOver(driver func(addresses ...string) ([]redlatch.Node, error)) func(context.Context, []string) (*Locker, error) {
	return func(_ context.Context, addresses []string) (*Locker, error) {
		nodes, err := driver(strings.Split(URL(server.RedisKind, addresses), ",")...)
		if err != nil {
			return nil, err
		}
		return lockerOf(redlatch.New(nodes, &plain))
	}
}

func lockerOf(c *redlatch.Client, err error) (*Locker, error) {
	if err != nil {
		return nil, err
	}
	return &Locker{
		Lock: func(ctx context.Context, name string) (Release, error) {
			lease, err := c.Lock(ctx, name, nil)
			if err != nil {
				return nil, err
			}
			return lease.Release, nil
		},
		Close: func() { c.Close() },
	}, nil
}

// Prepare declares new servers to be new, as an operator does once: the
// restart guard would quarantine them at first otherwise. A single Redis server
// is not guarded by default, and is left alone unless guard is set.
func Prepare(ctx context.Context, kind server.Kind, addresses []string, guard bool) error {
	options := plain
	if guard {
		options.Guard = redlatch.GuardOn
	} else if kind == server.RedisKind && len(addresses) < 2 {
		return nil
	}
	c, err := redlatch.Open(URL(kind, addresses), &options)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := fresh.Declare(ctx, c); err != nil {
		return fmt.Errorf("declaring the servers new: %w", err)
	}
	return nil
}
