//go:build unix

package redsync_test

import (
	"testing"

	goredis6 "github.com/go-redis/redis"
	goredis7 "github.com/go-redis/redis/v7"
	goredis8 "github.com/go-redis/redis/v8"
	"github.com/go-redsync/redsync/v4/redis"
	pool6 "github.com/go-redsync/redsync/v4/redis/goredis"
	pool7 "github.com/go-redsync/redsync/v4/redis/goredis/v7"
	pool8 "github.com/go-redsync/redsync/v4/redis/goredis/v8"
	pool9 "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	poolredigo "github.com/go-redsync/redsync/v4/redis/redigo"
	poolrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	poolvalkey "github.com/go-redsync/redsync/v4/redis/valkeygo"
	redigo "github.com/gomodule/redigo/redis"
	goredis9 "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
	"github.com/valkey-io/valkey-go"
	"github.com/valkey-io/valkey-go/valkeycompat"
	_ "golang.org/x/sync/errgroup" // redsync's tests need it

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/redsync"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node/nodetest"
)

// kinds are the pools of redsync, over every client that it knows.
var kinds = map[string]func(t testing.TB, addr string) redis.Pool{
	"redigo": func(t testing.TB, addr string) redis.Pool {
		pool := &redigo.Pool{MaxIdle: 8, Dial: func() (redigo.Conn, error) { return redigo.Dial("tcp", addr) }}
		t.Cleanup(func() { pool.Close() })
		return poolredigo.NewPool(pool)
	},
	"goredis": func(t testing.TB, addr string) redis.Pool {
		client := goredis6.NewClient(&goredis6.Options{Addr: addr})
		t.Cleanup(func() { client.Close() })
		return pool6.NewPool(client)
	},
	"goredis v7": func(t testing.TB, addr string) redis.Pool {
		client := goredis7.NewClient(&goredis7.Options{Addr: addr})
		t.Cleanup(func() { client.Close() })
		return pool7.NewPool(client)
	},
	"goredis v8": func(t testing.TB, addr string) redis.Pool {
		client := goredis8.NewClient(&goredis8.Options{Addr: addr})
		t.Cleanup(func() { client.Close() })
		return pool8.NewPool(client)
	},
	"goredis v9": func(t testing.TB, addr string) redis.Pool { return goredisPool(t, addr) },
	"rueidis": func(t testing.TB, addr string) redis.Pool {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
		must(t, err)
		t.Cleanup(client.Close)
		return poolrueidis.NewPool(rueidiscompat.NewAdapter(client))
	},
	"valkey-go": func(t testing.TB, addr string) redis.Pool {
		client, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{addr}, DisableCache: true})
		must(t, err)
		t.Cleanup(client.Close)
		return poolvalkey.NewPool(valkeycompat.NewAdapter(client))
	},
}

// goredisPool returns a pool of the client that most programs have.
func goredisPool(t testing.TB, addr string) redis.Pool {
	client := goredis9.NewClient(&goredis9.Options{Addr: addr})
	t.Cleanup(func() { client.Close() })
	return pool9.NewPool(client)
}

// goredisPools returns pools for servers.
func goredisPools(t testing.TB, servers []*servertest.Server) []redis.Pool {
	pools := make([]redis.Pool, len(servers))
	for i, s := range servers {
		pools[i] = goredisPool(t, s.Addr())
	}
	return pools
}

// TestNodeOverEveryPoolConforms runs redlatch's conformance suite for nodes.
func TestNodeOverEveryPoolConforms(t *testing.T) {
	t.Parallel()
	for kind, pool := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := servertest.Redis(t, 1)[0]
			nodetest.Run(t, nodetest.Harness{
				Open: func(t testing.TB) (a, b redlatch.Node) {
					nodes, err := redsync.PoolNodes([]redis.Pool{pool(t, server.Addr()), pool(t, server.Addr())})
					must(t, err)
					return nodes[0], nodes[1]
				},
			})
		})
	}
}
