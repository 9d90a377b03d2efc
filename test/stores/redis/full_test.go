//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/written"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// TestEvictedLockIsGivenBackWhileAMajorityHasIt fills the memory of one server,
// and then of another, with a policy that evicts keys with an expiry.
func TestEvictedLockIsGivenBackWhileAMajorityHasIt(t *testing.T) {
	t.Parallel()
	withDriver(t, "goredis", func(t *testing.T, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 3, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl")
		addresses := servertest.Addresses(servers)
		opts, log := logged(quick)
		holder, other := newClient(t, nodes(addresses...), opts), newClient(t, nodes(addresses...), quick)
		must(t, cycle(other))
		const ttl = 2 * time.Second
		l := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{TTL: ttl})
		const warning = "the server may evict keys (maxmemory-policy volatile-ttl), and with them locks: set maxmemory-policy noeviction"
		eventually(t, patience, func() error { // the last server's reply comes after the lock is acquired
			n := strings.Count(log.String(), warning)
			if n > len(servers) {
				t.Fatalf("it was said %d times, want once for each of three servers: %s", n, log.String())
			}
			if n < len(servers) {
				return fmt.Errorf("it was said %d times, want once for each of three servers: %s", n, log.String())
			}
			return nil
		})
		evict := func(s *servertest.Server) {
			s.Do("CONFIG", "SET", "maxmemory", "1")
			eventually(t, patience, func() error {
				if s.Do("GET", "job") != "" {
					return errors.New("the lock is not evicted")
				}
				return nil
			})
		}
		evict(servers[0])
		for end := time.Now().Add(ttl + ttl/5); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if _, err := other.TryLock(context.Background(), "job", nil); !errors.Is(err, redlatch.ErrHeld) {
				t.Fatalf("with one of three evicted another got %v", err)
			}
		}
		servers[0].Do("CONFIG", "SET", "maxmemory", "100mb")
		eventually(t, patience, heldOnAll(servers, "job"))
		// Evicted on a majority it is lost, and the next extension reports
		// that.
		evict(servers[0])
		evict(servers[1])
		<-l.Context().Done()
		wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
		t.Log("the holder is told:", context.Cause(l.Context()))
		for _, s := range servers {
			s.Do("CONFIG", "SET", "maxmemory", "100mb")
		}
		next := mustLock(t, other, "job", redlatch.LockOptions{Wait: 5 * time.Minute})
		if next.Token() <= l.Token() {
			exclusion.Never(t, "token %d came after %d", next.Token(), l.Token())
		}
	})
}

// TestFullServersKeepWhatIsHeld fills the servers' memory under a holder.
func TestFullServersKeepWhatIsHeld(t *testing.T) {
	t.Parallel()
	withDriver(t, "rueidis", func(t *testing.T, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 3)
		addresses := servertest.Addresses(servers)
		holder, other := newClient(t, nodes(addresses...), quick), newClient(t, nodes(addresses...), quick)
		must(t, cycle(other))
		const ttl = 2 * time.Second
		l := holdOnAll(t, holder, servers, "job", redlatch.LockOptions{TTL: ttl})
		for _, s := range servers {
			s.Do("CONFIG", "SET", "maxmemory", "1")
		}
		for end := time.Now().Add(ttl + ttl/4); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			_, err := other.TryLock(context.Background(), "another", nil)
			wantErr(t, err, redlatch.ErrNoQuorum)
			if !strings.Contains(err.Error(), "OOM ") {
				t.Fatalf("%v does not say that memory is used up", err)
			}
			_, err = other.TryLock(context.Background(), "job", nil)
			wantErr(t, err, redlatch.ErrHeld)
		}
		if err := l.Err(); err != nil {
			t.Errorf("the holder: %v", err)
		}
		mustRelease(t, l)
		eventually(t, undone, noKeys(servers))
		for _, s := range servers {
			s.Do("CONFIG", "SET", "maxmemory", "0")
		}
		must(t, cycle(other))
	})
}

// TestFullServersKeepSharesThatAreHeld does the same with several holders, who
// are extended and released beside each other.
func TestFullServersKeepSharesThatAreHeld(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]redlatch.LockOptions{"readers": {Shared: true}, "slots": {Slots: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := servertest.Redis(t, 3)
			c := newClient(t, open(t, servertest.Addresses(servers)...), quick)
			must(t, cycle(c))
			opts.TTL = 2 * time.Second
			var all []*redlatch.Lease
			for range 3 {
				all = append(all, mustLock(t, c, "doc", opts))
			}
			settled(t, servers, "doc", len(all))
			for _, s := range servers {
				s.Do("CONFIG", "SET", "maxmemory", "1")
			}
			for i, l := range all {
				time.Sleep(opts.TTL + opts.TTL/4)
				for _, l := range all[i:] {
					if err := l.Err(); err != nil {
						t.Errorf("a holder: %v", err)
					}
				}
				if err := l.Release(context.Background()); err != nil {
					t.Errorf("the release beside %d others: %v", len(all)-i-1, err)
				}
				settled(t, servers, "doc", len(all)-i-1)
			}
			eventually(t, undone, noKeys(servers))
		})
	}
}

// settled waits until a name has so many holders on every server.
func settled(t *testing.T, servers []*servertest.Server, name string, want int) {
	t.Helper()
	for _, s := range servers {
		eventually(t, patience, func() error { return lookedUp(s, name, want) })
	}
}

// lookedUp returns an error unless a name has so many holders on a server.
func lookedUp(s *servertest.Server, name string, want int) error {
	nodes, err := direct.Nodes(s.URL())
	if err != nil {
		return err
	}
	defer nodes[0].Close()
	l, err := nodes[0].(node.Lister).Look(context.Background(), name)
	if err == nil && len(l.Holders) != want {
		err = fmt.Errorf("%v has %d holders, want %d", nodes[0], len(l.Holders), want)
	}
	return err
}

// TestServerThatCannotSaveEndsTheLeaseAtItsDeadline has a server refuse every
// write of a holder, which is how it reports that its disk is full.
func TestServerThatCannotSaveEndsTheLeaseAtItsDeadline(t *testing.T) {
	t.Parallel()
	withDriver(t, "direct", func(t *testing.T, nodes func(...string) []redlatch.Node) {
		server := servertest.Redis(t, 1, "--save", "3600", "1000000")[0]
		c := newClient(t, nodes(server.URL()), redlatch.Options{})
		l := mustLock(t, c, "job", redlatch.LockOptions{TTL: 2 * time.Second})
		// A folder in place of the file that the server saves to.
		must(t, os.Mkdir(filepath.Join(server.Dir(), "dump.rdb"), 0o700))
		server.Try("BGSAVE")
		eventually(t, patience, func() error {
			if !strings.Contains(server.Do("INFO", "persistence"), "rdb_last_bgsave_status:err") {
				return errors.New("the save has not failed yet")
			}
			return nil
		})
		err := l.Extend(context.Background())
		wantErr(t, err, redlatch.ErrNoQuorum)
		wantText(t, err, "MISCONF ")
		t.Log("who extends is told:", err)
		<-l.Context().Done()
		wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
		eventually(t, patience, noKeys([]*servertest.Server{server})) // it expires all the same
		server.Do("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
		next := mustLock(t, c, "job", redlatch.LockOptions{})
		if next.Token() <= l.Token() {
			exclusion.Never(t, "token %d came after %d", next.Token(), l.Token())
		}
		mustRelease(t, next)
	})
}

// TestServerThatMayEvictIsLoggedByDefault has a client without a logger.
func TestServerThatMayEvictIsLoggedByDefault(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	var log written.Text
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	for policy, want := range map[string]int{"noeviction": 0, "allkeys-lru": 1} {
		s := servertest.Redis(t, 1, "--maxmemory", "100mb", "--maxmemory-policy", policy)[0]
		c := newClient(t, open(t, s.URL()), redlatch.Options{})
		must(t, cycle(c))
		must(t, cycle(c))
		if n := strings.Count(log.String(), s.URL()); n != want {
			t.Errorf("%s is logged %d times, want %d:\n%s", policy, n, want, log.String())
		}
	}
}
