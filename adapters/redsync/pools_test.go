//go:build unix

package redsync_test

import (
	"testing"

	"github.com/go-redsync/redsync/v4/redis"
	_ "golang.org/x/sync/errgroup" // redsync's tests need it

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/adapters/redsync"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node/nodetest"
)

// openPool returns a pool over a client.
func openPool(t testing.TB, client, addr string) redis.Pool {
	pool, closeIt := redsync.Clients[client](addr)
	t.Cleanup(closeIt)
	return pool
}

// goredisPool returns a pool of the client that most programs have.
func goredisPool(t testing.TB, addr string) redis.Pool { return openPool(t, "goredis", addr) }

// goredisPools returns pools for servers.
func goredisPools(t testing.TB, servers []*servertest.Server) []redis.Pool {
	pools := make([]redis.Pool, len(servers))
	for i, s := range servers {
		pools[i] = goredisPool(t, s.Addr())
	}
	return pools
}

// TestNodeOverAPoolConforms runs redlatch's conformance suite for nodes.
func TestNodeOverAPoolConforms(t *testing.T) {
	t.Parallel()
	for client := range redsync.Clients {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			server := servertest.Redis(t, 1)[0]
			nodetest.Run(t, nodetest.Harness{
				Open: func(t testing.TB) (a, b redlatch.Node) {
					nodes, err := redsync.PoolNodes([]redis.Pool{openPool(t, client, server.Addr()), openPool(t, client, server.Addr())})
					must(t, err)
					return nodes[0], nodes[1]
				},
			})
		})
	}
}
