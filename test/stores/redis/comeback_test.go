//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// short are cluster parameters with a quarantine of a few seconds. A lock with
// a shorter TTL would be lost on a busy machine.
var short = redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 3 * time.Second}, NodeTimeout: time.Second}

// trusted reports whether a server is marked and no longer quarantined, by its own
// clock.
func trusted(s *servertest.Server) error {
	m := strings.Fields(s.Do("GET", "redlatch:1:marker"))
	if len(m) < 11 {
		return fmt.Errorf("%s is marked %q", s.Addr(), m)
	}
	if now := strings.Fields(s.Do("TIME")); m[9] > fmt.Sprintf("%010s%06s", now[0], now[1]) {
		return fmt.Errorf("%s is in quarantine, epoch %s", s.Addr(), m[2])
	}
	return nil
}

// TestServerThatLostItsDataComesBackByItself flushes one of three servers.
// Later another server fails, and the remaining two must be enough.
func TestServerThatLostItsDataComesBackByItself(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	start := func(t testing.TB) ([]*servertest.Server, *redlatch.Client) {
		servers := servertest.Redis(t, 3)
		c := newClient(t, open(t, servertest.Addresses(servers)...), short)
		must(t, cycle(c))
		return servers, c
	}
	t.Run("locks that come and go", func(t *testing.T) {
		t.Parallel()
		timed(t, func(t testing.TB) {
			servers, c := start(t)
			servers[0].Do("FLUSHALL")
			eventually(t, patience, func() error {
				if err := cycle(c); err != nil {
					return err
				}
				return trusted(servers[0])
			})
			servers[1].Kill()
			eventually(t, patience, func() error { return cycle(c) })
		})
	})
	t.Run("a lock that is held", func(t *testing.T) {
		t.Parallel()
		timed(t, func(t testing.TB) {
			servers, _ := start(t)
			c := laterClient(t, short, servertest.Addresses(servers)...)
			begin := time.Now()
			l, err := c.Lock(ctx, "job", nil)
			must(t, err)
			servers[0].Do("FLUSHALL")
			eventually(t, patience, func() error {
				if err := l.Err(); err != nil {
					stall.Busy(t, starved, begin) // a lease of three seconds
					t.Fatalf("nobody extends it any more: %v", err)
				}
				return trusted(servers[0])
			})
			eventually(t, patience, func() error {
				if servers[0].Do("GET", "job") == "" {
					return errors.New("the lock is not back there")
				}
				return nil
			})
			servers[1].Kill()
			time.Sleep(2 * short.MaxTTL) // it must be extended during that time
			if err := l.Err(); err != nil {
				stall.Busy(t, starved, begin)
				t.Errorf("with two of three left: %v", err)
			}
		})
	})
	t.Run("a lock that is held, and is not lost with the marker", func(t *testing.T) {
		t.Parallel()
		timed(t, func(t testing.TB) {
			servers, c := start(t)
			begin := time.Now()
			l, err := c.Lock(ctx, "job", nil)
			must(t, err)
			eventually(t, patience, func() error {
				if servers[0].Do("GET", "job") == "" {
					return errors.New("not reached yet")
				}
				return nil
			})
			servers[0].Do("DEL", "redlatch:1:marker")
			eventually(t, patience, func() error {
				if err := l.Err(); err != nil {
					stall.Busy(t, starved, begin) // a lease of three seconds
					t.Fatalf("nobody extends it any more: %v", err)
				}
				return trusted(servers[0])
			})
			if err := l.Err(); err != nil {
				stall.Busy(t, starved, begin)
				t.Error(err)
			}
		})
	})
	t.Run("clients of one lock each", func(t *testing.T) {
		t.Parallel()
		timed(t, func(t testing.TB) {
			servers, _ := start(t)
			servers[0].Do("FLUSHALL")
			eventually(t, patience, func() error {
				c, err := redlatch.New(open(t, servertest.Addresses(servers)...), &short)
				must(t, err)
				defer c.Close()
				if err := cycle(c); err != nil {
					return err
				}
				return trusted(servers[0])
			})
		})
	})
}

// TestOneWitnessIsNotEnoughToMarkANode changes the membership from a, b, c to
// a, b, d while c is unreachable. c returns with its old marker, and b loses
// its data. A client of the old membership must not bring b and c into service,
// while a and d serve the new membership.
func TestOneWitnessIsNotEnoughToMarkANode(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		servers := servertest.Redis(t, 4)
		proxy := servertest.NewProxy(t, servers[2])
		a, b, c, d := servers[0].URL(), servers[1].URL(), proxy.URL(), servers[3].URL()
		old := newClient(t, open(t, a, b, c), short)
		must(t, cycle(old))
		nobody := "127.0.0.1:" + servertest.FreePort(t)
		proxy.LeadTo(nobody)
		proxy.Reset()
		changed := laterClient(t, short, a, b, d)
		_, err := admin.New(changed).Init(context.Background(), &admin.InitOptions{Former: open(t, a, b, c)})
		proxy.LeadTo(servers[2].Addr())
		must(t, err)
		eventually(t, patience, func() error { return cycle(changed) })
		begin := time.Now()
		l, err := changed.Lock(context.Background(), "job", nil)
		must(t, err)
		servers[1].Do("FLUSHALL")
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if l2, err := old.TryLock(context.Background(), "job", nil); err == nil {
				exclusion.Never(t, "two holders: %v of the new membership is left, and the old one granted token %d", l.Remaining(), l2.Token())
			}
			// b may be marked for the new membership, of which a and d are a
			// quorum.
			if m := servers[1].Do("GET", "redlatch:1:marker"); m != "" && !strings.Contains(m, d) {
				exclusion.Never(t, "on the word of one node, b was marked %q", m)
			}
		}
		if err := l.Err(); err != nil {
			stall.Busy(t, starved, begin)
			t.Errorf("the new membership's lease: %v", err)
		}
	})
}
