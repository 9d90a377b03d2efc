//go:build unix

package redis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
)

func TestListWalksThroughManyKeysAndFindsEachLockOnce(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		server.Do("FLUSHALL")
		// Most keys are none of ours, and most fences belong to locks that are
		// free again.
		server.Do("EVAL", `for i = 1, 5000 do redis.call('SET', 'data:' .. i, 'x') end
			for i = 1, 3000 do redis.call('SET', 'redlatch:1:fence:{spent ' .. i .. '}', '00000000000000000001') end
			redis.call('SET', 'redlatch:1:fence:nonsense', 'x') redis.call('SET', 'redlatch:1:queue:nonsense', 'x')`, "0")
		c := newClient(t, nodes(server.URL()), redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 10 * time.Minute}})
		want := map[string]bool{}
		for i := range 250 {
			name := fmt.Sprintf("{%d}job}%d", i%7, i)
			want[name] = true
			_, err := c.TryLock(context.Background(), name, &redlatch.LockOptions{NoKeepAlive: true, TTL: 10 * time.Minute})
			must(t, err)
		}
		s, err := admin.New(c).List(context.Background())
		must(t, err)
		for _, l := range s.Locks {
			if !want[l.Name] || !l.Held {
				t.Errorf("%q is listed, held %v", l.Name, l.Held)
			}
			delete(want, l.Name)
		}
		if len(want) > 0 {
			t.Errorf("%d are missing", len(want))
		}
	})
}

func TestListShowsTheQueueWithoutItsInboxes(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		c := newClient(t, nodes(server.URL()), redlatch.Options{})
		value := func(i int) string { return fmt.Sprintf("%032x:host/%d/waiter", i, i) }
		const first = 1_763_000_000_123_457
		for i := range 150 {
			server.Do("ZADD", "redlatch:1:queue:{job}", fmt.Sprint(first+150-i), value(i)+"\x00inbox")
		}
		s, err := admin.New(c).List(context.Background())
		if err != nil || len(s.Locks) != 1 || s.Locks[0].Waiting != 150 || s.Locks[0].Held {
			t.Fatalf("a lock that is only waited for is listed as %+v, %v", s.Locks, err)
		}
		// With a fence and a queue it is still one lock.
		server.Do("SET", "redlatch:1:fence:{job}", "00000000000000000001", "PX", "60000")
		times := 0
		n := nodes(server.URL())[0].(node.Lister)
		if err := n.List(context.Background(), "", func(node.Listing) { times++ }); err != nil || times != 1 {
			t.Errorf("it is listed %d times, %v", times, err)
		}
		n.Close()
		state, err := admin.New(c).Show(context.Background(), "job")
		if err != nil || state.Waiting != 150 || len(state.Waiters) != node.MaxListed {
			t.Fatalf("it is shown with %d waiters, %d of them named, %v", state.Waiting, len(state.Waiters), err)
		}
		if w := state.Waiters[0]; w.Owner != "host/149/waiter" || w.Since.UnixMicro() != first+1 {
			t.Errorf("the head is %+v", w)
		}
	})
}

// TestForeignFormatsAreShownAndABreakOfOneMustBeAskedFor has a break leave no trace
// that was not asked to break a foreign format.
func TestForeignFormatsAreShownAndABreakOfOneMustBeAskedFor(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		server.Do("FLUSHALL")
		c := newClient(t, nodes(server.URL()), redlatch.Options{})
		server.Do("SET", "plain", "uuid", "PX", "60000")
		server.Do("HSET", "redisson", "id", "1")
		if s, err := admin.New(c).List(context.Background()); err != nil || len(s.Locks) > 0 {
			t.Errorf("listed are %+v, %v", s.Locks, err)
		}
		for name, kind := range map[string]redlatch.HolderKind{
			"plain": redlatch.KindPlain, "redisson": redlatch.KindForeign,
		} {
			s, err := admin.New(c).Show(context.Background(), name)
			if err != nil || !s.Held || s.Holders[0].Kind != kind {
				t.Errorf("%s is shown as %+v, %v", name, s, err)
			}
		}
		_, err := admin.New(c).Show(context.Background(), "redlatch:1:marker")
		wantErr(t, err, redlatch.ErrConfig)
		_, err = admin.New(c).Break(context.Background(), "redisson", nil)
		wantErr(t, err, redlatch.ErrHeld)
		if server.Do("HGET", "redisson", "id") != "1" || server.Do("EXISTS", "redlatch:1:fence:{redisson}") != "0" {
			t.Error("it is gone, or the fence was raised")
		}
		_, err = admin.New(c).Break(context.Background(), "redisson", &admin.BreakOptions{Foreign: true})
		if must(t, err); server.Do("EXISTS", "redisson") != "0" {
			t.Error("it is still there")
		}
	})
}

func TestListGoesThroughEveryMasterOfACluster(t *testing.T) {
	t.Parallel()
	servers := startCluster(t)
	hosts := servertest.Hosts(servers)
	eachLibrary(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		c := newClient(t, nodes("redis+cluster://"+strings.Join(hosts, "+")), redlatch.Options{})
		const locks = 30
		for i := range locks {
			l, err := c.Lock(context.Background(), fmt.Sprint("job ", i), nil)
			must(t, err)
			defer l.Release(context.Background())
		}
		for i, s := range servers {
			if len(s.Keys()) == 0 {
				t.Fatalf("server %d has no lock", i)
			}
		}
		s, err := admin.New(c).List(context.Background())
		if err != nil || len(s.Locks) != locks {
			t.Errorf("of %d locks %d are listed, %v", locks, len(s.Locks), err)
		}
		if _, err := admin.New(c).Break(context.Background(), "job 7", nil); err != nil {
			t.Error(err)
		}
		if s, err := admin.New(c).Show(context.Background(), "job 7"); err != nil || len(s.Holders) > 0 {
			t.Errorf("after the break: %+v, %v", s, err)
		}
	})
}

var _ node.Lister = (*redis.Node)(nil)
