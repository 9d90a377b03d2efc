package contender

import (
	"context"
	"fmt"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/store/etcd"
	"github.com/redlatch/redlatch/store/mysql"
	"github.com/redlatch/redlatch/store/postgres"
	"github.com/redlatch/redlatch/store/redis/direct"
	"github.com/redlatch/redlatch/store/redis/goredis"
	"github.com/redlatch/redlatch/store/redis/rueidis"
	"github.com/redlatch/redlatch/store/zookeeper"
	"github.com/redlatch/redlatch/test/bench/server"
)

// dial returns nodes of the servers at some addresses.
type dial func(addresses []string) ([]redlatch.Node, error)

var overSockets, overRueidis, overGoRedis = over(direct.Nodes), over(rueidis.Nodes), over(goredis.Nodes)

// over is a driver for Redis.
func over(open func(addresses ...string) ([]redlatch.Node, error)) dial {
	return func(addresses []string) ([]redlatch.Node, error) {
		var urls []string
		for _, a := range addresses {
			urls = append(urls, "redis://"+a)
		}
		return open(urls...)
	}
}

var (
	overPostgres  = single(postgres.Open, server.Postgres, "&pool_max_conns=2")
	overMariaDB   = single(mysql.Open, server.MariaDB, "")
	overEtcd      = single(etcd.Open, server.EtcdKind, "")
	overZooKeeper = single(zookeeper.Open, server.ZooKeeper, "")
)

// URL returns the address of a node, as a user has it. Servers of a cluster are one.
func URL(k server.Kind, addresses []string) string {
	switch k {
	case server.Postgres:
		return postgresURL(addresses[0])
	case server.MariaDB:
		return "mysql://root@" + addresses[0] + "/test"
	}
	return string(k) + "://" + strings.Join(addresses, "+")
}

// single is a store whose servers, however many, are one node.
func single[N redlatch.Node, O any](open func(url string, options *O) (N, error), k server.Kind, more string) dial {
	return func(addresses []string) ([]redlatch.Node, error) {
		n, err := open(URL(k, addresses)+more, nil)
		return []redlatch.Node{n}, err
	}
}

func plain() redlatch.Options { return redlatch.Options{TTL: TTL} }

func newRedlatch(nodes dial, options redlatch.Options, addresses []string) (*redlatch.Client, error) {
	list, err := nodes(addresses)
	if err != nil {
		return nil, err
	}
	return redlatch.New(list, &options)
}

func openRedlatch(nodes dial, options func() redlatch.Options) func(context.Context, []string) (*Locker, error) {
	return func(_ context.Context, addresses []string) (*Locker, error) {
		c, err := newRedlatch(nodes, options(), addresses)
		if err != nil {
			return nil, err
		}
		return lockerOf(c), nil
	}
}

func lockerOf(c *redlatch.Client) *Locker {
	return &Locker{
		Lock: func(ctx context.Context, name string) (Release, error) {
			lease, err := c.Lock(ctx, name, nil)
			if err != nil {
				return nil, err
			}
			return lease.Release, nil
		},
		Close: func() { c.Close() },
	}
}

// Prepare declares new servers to be new, as an operator does once: the
// restart guard would quarantine them at first otherwise. A single Redis server
// is not guarded by default, and is left alone unless guard is set.
func Prepare(ctx context.Context, kind server.Kind, addresses []string, guard bool) error {
	nodes := map[server.Kind]dial{server.RedisKind: overSockets, server.Postgres: overPostgres, server.MariaDB: overMariaDB,
		server.EtcdKind: overEtcd, server.ZooKeeper: overZooKeeper}[kind]
	options := plain()
	if guard {
		options.Guard = redlatch.GuardOn
	}
	if kind == server.RedisKind && !guard && len(addresses) < 2 {
		return nil
	}
	c, err := newRedlatch(nodes, options, addresses)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := fresh.Declare(ctx, c); err != nil {
		return fmt.Errorf("declaring the servers new: %w", err)
	}
	return nil
}
