//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	goredisclient "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/goredis"
)

// TestPoolThatTheProgramUsesUpEndsTheLeaseAtItsDeadline uses a client of the
// program's own whose connections are all blocked. Nodes that we make reserve
// some connections: see TestFullPoolCannotLoseALock.
func TestPoolThatTheProgramUsesUpEndsTheLeaseAtItsDeadline(t *testing.T) {
	t.Parallel()
	timed(t, poolUsedUp)
}

func poolUsedUp(t testing.TB) {
	server := servertest.Redis(t, 1)[0]
	client := goredisclient.NewClient(&goredisclient.Options{Addr: server.Addr(), PoolSize: 2, MinIdleConns: 0,
		MaxActiveConns: 2, PoolTimeout: 100 * time.Millisecond, ReadTimeout: -1, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	theirs, err := goredis.From(client, &goredis.Options{Name: "theirs"})
	must(t, err)
	c := newClient(t, []redlatch.Node{theirs}, redlatch.Options{})
	l := mustLock(t, c, "job", redlatch.LockOptions{TTL: time.Second})
	ended, start := endOf(l), time.Now()
	done := make(chan error, 2)
	for range 2 {
		go func() {
			for { // the lock's own requests may occupy the connections for a while
				if err := client.BLPop(context.Background(), 0, "work").Err(); !errors.Is(err, goredisclient.ErrPoolTimeout) {
					done <- err
					return
				}
			}
		}()
	}
	eventually(t, patience, func() error {
		other, err := c.TryLock(context.Background(), "another", nil)
		if err == nil {
			other.Release(context.Background())
			return errors.New("the pool is not used up yet")
		}
		if !strings.Contains(err.Error(), "connection pool") {
			return err
		}
		wantErr(t, err, redlatch.ErrNoQuorum, node.ErrUnsent)
		t.Log("who asks is told:", err)
		return nil
	})
	at := <-ended
	wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
	if late := at.Sub(l.Deadline()); over(t, late, slack, start) {
		t.Errorf("it was told %v after the deadline", late)
	}
	server.Do("RPUSH", "work", "a", "b")
	for range 2 {
		must(t, <-done)
	}
	next := mustLock(t, c, "job", redlatch.LockOptions{Wait: time.Minute})
	if next.Token() <= l.Token() {
		exclusion.Never(t, "token %d came after %d", next.Token(), l.Token())
	}
	mustRelease(t, next)
	eventually(t, undone, noKeys([]*servertest.Server{server}))
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
		slow := extend()
		t.Logf("%d extensions take %v, and %v with answers after %v", leases, quick, slow, delay)
		if over(t, slow-quick, 8*delay, start) {
			t.Errorf("%d extensions took %v, and without the delay %v: they waited for each other", leases, slow, quick)
		}
	})
}
