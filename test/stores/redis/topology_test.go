//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// startCluster returns a cluster of three masters that share the slots.
func startCluster(t testing.TB) []*servertest.Server {
	t.Helper()
	servers := servertest.Redis(t, 3, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
	const slots = 16384
	for i, s := range servers {
		args := []string{"CLUSTER", "ADDSLOTS"}
		for slot := i * slots / 3; slot < (i+1)*slots/3; slot++ {
			args = append(args, fmt.Sprint(slot))
		}
		s.Do(args...)
		host, port, _ := net.SplitHostPort(servers[0].Addr())
		s.Do("CLUSTER", "MEET", host, port)
	}
	eventually(t, patience, func() error {
		for i, s := range servers {
			if info := s.Do("CLUSTER", "INFO"); !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return fmt.Errorf("server %d: %s", i, info)
			}
		}
		return nil
	})
	return servers
}

func TestPlainAddressOfAClusterSaysWhatToUse(t *testing.T) {
	t.Parallel()
	servers := startCluster(t)
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		c := newClient(t, nodes(servers[0].URL()), redlatch.Options{})
		var moved error
		for i := range 20 {
			if _, err := c.TryLock(context.Background(), fmt.Sprint("job ", i), nil); err != nil {
				moved = err
			}
		}
		if moved == nil || !strings.Contains(moved.Error(), "redis+cluster://") {
			t.Errorf("got %v, want a hint at redis+cluster://", moved)
		}
	})
}

func TestSentinelIsANodeAndFollowsItsMaster(t *testing.T) {
	t.Parallel()
	eachLibrary(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		t.Parallel()
		d := startSentinel(t, 1)
		c := newClient(t, nodes(d.address()), redlatch.Options{NodeTimeout: 2 * time.Second, Cluster: redlatch.Cluster{MaxTTL: time.Second}})
		// A lease of a second may end on a busy machine before it is extended.
		eventually(t, patience, func() error { return cycle(c) })
		if n := strings.Count(d.master.Do("KEYS", "*"), "redlatch:1:fence"); n != 1 {
			t.Errorf("the master has %d fences, want 1", n)
		}
		d.master.Kill()
		eventually(t, failover, func() error { return cycle(c) })
		if !strings.Contains(d.replicas[0].Do("INFO", "replication"), "role:master") {
			t.Error("the replica was not promoted, and yet there was a lock to be had")
		}
	})
}

// TestMasterLostBehindSentinelLetsNobodyInTooEarly has a replica promoted that
// lacks the lock.
func TestMasterLostBehindSentinelLetsNobodyInTooEarly(t *testing.T) {
	t.Parallel()
	d := startSentinel(t, 1)
	opts := redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 2 * failover}}
	first, second := newClient(t, open(t, d.address()), opts), newClient(t, open(t, d.address()), opts)
	for _, c := range []*redlatch.Client{second, first} {
		must(t, cycle(c))
	}
	l := mustLock(t, first, "job", redlatch.LockOptions{TTL: 2 * failover, NoKeepAlive: true})
	d.master.Kill()
	eventually(t, failover, func() error {
		// A sentinel that promotes a server closes its connections.
		if info, err := d.replicas[0].Try("INFO", "replication"); err != nil || !strings.Contains(info, "role:master") {
			return fmt.Errorf("the replica is not promoted yet: %v", err)
		}
		_, err := d.replicas[0].Try("DEL", "job") // as if the last write had not reached it
		return err
	})
	eventually(t, patience, func() error {
		_, err := second.TryLock(context.Background(), "job", nil)
		if l.Remaining() <= 0 {
			t.Fatal("this machine was too busy to fail over within the lease: nothing is shown")
		}
		if err == nil {
			exclusion.Never(t, "two holders: %v are left of the first lease", l.Remaining())
		}
		if !errors.Is(err, redlatch.ErrQuarantine) {
			return err
		}
		return nil
	})
}

// TestFullPoolCannotLoseALock has requests for locks occupy every connection,
// on a server that answers slowly.
func TestFullPoolCannotLoseALock(t *testing.T) {
	t.Parallel()
	eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
		server := servertest.Redis(t, 1)[0]
		proxy := servertest.NewProxy(t, server)
		c := newClient(t, nodes(proxy.URL()), redlatch.Options{NodeTimeout: time.Second})
		l, err := c.Lock(context.Background(), "kept", &redlatch.LockOptions{TTL: 2 * time.Second})
		must(t, err)
		proxy.Delay(50 * time.Millisecond)
		begin := time.Now()
		ctx, stop := context.WithTimeout(context.Background(), 3*time.Second)
		defer stop()
		var all sync.WaitGroup
		for i := range 64 { // four times as many as there are connections
			all.Go(func() {
				for ctx.Err() == nil {
					if l, err := c.TryLock(ctx, fmt.Sprint("job ", i), &redlatch.LockOptions{TTL: 10 * time.Second}); err == nil {
						l.Release(context.Background())
					}
				}
			})
		}
		all.Wait()
		if err := l.Err(); err != nil {
			stall.Busy(t, starved, begin) // a lease of two seconds
			t.Errorf("the lock was lost for want of a connection: %v", err)
		}
	})
}
