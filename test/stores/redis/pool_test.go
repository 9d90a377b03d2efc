//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	goredisclient "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/goredis"
)

// TestPoolThatTheProgramUsesUpIsToldToTheCaller uses a client of the program's own
// whose connections are all blocked. Nodes that we make reserve some connections: see
// TestFullPoolCannotLoseALock.
func TestPoolThatTheProgramUsesUpIsToldToTheCaller(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	client := goredisclient.NewClient(&goredisclient.Options{Addr: server.Addr(), PoolSize: 1, MaxActiveConns: 1,
		PoolTimeout: 100 * time.Millisecond, ReadTimeout: -1, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	theirs, err := goredis.From(client, &goredis.Options{Name: "theirs"})
	must(t, err)
	occupied := client.Conn()
	must(t, occupied.Ping(t.Context()).Err())
	c := newClient(t, []redlatch.Node{theirs}, guardOff(redlatch.Options{}))
	_, err = c.TryLock(context.Background(), "job", nil)
	wantErr(t, err, redlatch.ErrNoQuorum, node.ErrUnsent)
	wantText(t, err, "connection pool")
	must(t, occupied.Close())
	must(t, cycle(c))
}

// TestExtensionsOfManyLeasesDoNotWaitForEachOther extends all the leases of a
// program at once, on a server that answers slowly. The limit is counted in
// answers: one answer at a time on each connection would take hundreds.
func TestExtensionsOfManyLeasesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	const leases, delay = 800, 200 * time.Millisecond
	eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
		proxy := servertest.NewProxy(t, servertest.Redis(t, 1)[0])
		c := newClient(t, nodes(proxy.URL()), redlatch.Options{NodeTimeout: 20 * time.Second, Cluster: redlatch.Cluster{MaxTTL: time.Hour}})
		held := make([]*redlatch.Lease, leases)
		for i := range held {
			held[i] = mustLock(t, c, fmt.Sprint("job ", i), redlatch.LockOptions{TTL: ages, NoKeepAlive: true})
		}
		extend := func() time.Duration {
			start := time.Now()
			var all sync.WaitGroup
			for _, l := range held {
				all.Go(func() {
					if err := l.Extend(context.Background()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			return time.Since(start)
		}
		start := time.Now()
		quick := extend()
		proxy.Delay(delay)
		slow := min(extend(), extend(), extend()) // a server may be stopped during one
		if over(t, slow-quick, 8*delay, start) {
			t.Errorf("%d extensions took %v, and without the delay %v: they waited for each other", leases, slow, quick)
		}
	})
}
