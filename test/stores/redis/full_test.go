//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/written"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// TestEvictedLockIsGivenBackWhileAMajorityHasIt fills the memory of one server with a
// policy that evicts keys with an expiry. A client without a logger warns of it.
func TestEvictedLockIsGivenBackWhileAMajorityHasIt(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var log written.Text
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	servers := servertest.Redis(t, 3, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl")
	addresses := servertest.Addresses(servers)
	l := holdOnAll(t, newClient(t, open(t, addresses...), quick), servers, "job", redlatch.LockOptions{TTL: 2 * time.Second})
	const warning = "the server may evict keys (maxmemory-policy volatile-ttl), and with them locks: set maxmemory-policy noeviction"
	eventually(t, patience, func() error { // the last server's reply comes after the lock is acquired
		if n := strings.Count(log.String(), warning); n != len(servers) {
			return fmt.Errorf("it was said %d times, want once for each of three servers: %s", n, log.String())
		}
		return nil
	})
	other := newClient(t, open(t, addresses...), quick)
	servers[0].Do("CONFIG", "SET", "maxmemory", "1")
	eventually(t, patience, func() error {
		_, err := other.TryLock(context.Background(), "job", nil)
		wantErr(t, err, redlatch.ErrHeld)
		if servers[0].Do("GET", "job") != "" {
			return errors.New("the lock is not evicted")
		}
		return nil
	})
	servers[0].Do("CONFIG", "SET", "maxmemory", "100mb")
	eventually(t, patience, heldOnAll(servers, "job"))
	must(t, l.Err())
}

// TestFullServersKeepWhatIsHeld fills the servers' memory under holders, who are
// extended and released beside each other.
func TestFullServersKeepWhatIsHeld(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]redlatch.LockOptions{"one": {}, "readers": {Shared: true}, "slots": {Slots: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := servertest.Redis(t, 3)
			c := newClient(t, open(t, servertest.Addresses(servers)...), redlatch.Options{})
			must(t, cycle(c))
			opts.NoKeepAlive = true
			var all []*redlatch.Lease
			for range map[string]int{"one": 1, "readers": 3, "slots": 3}[name] {
				all = append(all, mustLock(t, c, "doc", opts))
			}
			settled(t, servers, "doc", all)
			for _, s := range servers {
				s.Do("CONFIG", "SET", "maxmemory", "1")
			}
			_, err := c.TryLock(context.Background(), "another", nil)
			wantErr(t, err, redlatch.ErrNoQuorum)
			wantText(t, err, "OOM ")
			_, err = c.TryLock(context.Background(), "doc", nil)
			wantErr(t, err, redlatch.ErrHeld)
			for i, l := range all {
				for _, l := range all[i:] {
					must(t, l.Extend(context.Background()))
				}
				mustRelease(t, l)
				settled(t, servers, "doc", all[i+1:])
			}
			eventually(t, undone, noKeys(servers))
		})
	}
}

// settled waits until every server has these holders of a name, and no others. An
// extension repairs a server that did not answer in time, which a busy one may not.
func settled(t *testing.T, servers []*servertest.Server, name string, want []*redlatch.Lease) {
	t.Helper()
	nodes, err := direct.Nodes(servertest.Addresses(servers)...)
	must(t, err)
	for _, n := range nodes {
		defer n.Close()
		eventually(t, patience, func() error {
			for _, l := range want {
				must(t, l.Extend(context.Background()))
			}
			l, err := n.(node.Lister).Look(context.Background(), name)
			if err == nil && len(l.Holders) != len(want) {
				err = fmt.Errorf("%v has %d holders, want %d", n, len(l.Holders), len(want))
			}
			return err
		})
	}
}
