//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/clientaccess"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// noKeys complains if a lock is left on any server.
func noKeys(servers []*servertest.Server) func() error {
	return func() error {
		for i, s := range servers {
			if keys := s.Keys(); len(keys) > 0 {
				return fmt.Errorf("server %d has %q", i, keys)
			}
		}
		return nil
	}
}

// cycle acquires, extends and releases.
func cycle(c *redlatch.Client) error {
	ctx := context.Background()
	l, err := c.Lock(ctx, "job", nil)
	if err != nil {
		return err
	}
	return errors.Join(l.Extend(ctx), l.Release(ctx))
}

// TestQuorumOutlivesAMinority kills one server of three after the other, and restarts
// one. The first request finds the connections broken; both it and the next get an
// error at once.
func TestQuorumOutlivesAMinority(t *testing.T) {
	eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 3)
		c := newClient(t, nodes(servertest.Addresses(servers)...), guardOff(redlatch.Options{}))
		must(t, cycle(c))
		servers[0].Kill()
		must(t, cycle(c))
		servers[2].Kill()
		for range 2 {
			start := time.Now()
			_, err := c.TryLock(context.Background(), "job", nil)
			wantErr(t, err, redlatch.ErrNoQuorum)
			wantText(t, err, "refused")
			if took := time.Since(start); over(t, took, 2*time.Second, start) {
				t.Errorf("it took %v to say so, with a node time limit of %v", took, patient)
			}
		}
		servers[2].Restart()
		eventually(t, patience, func() error { return cycle(c) })
		eventually(t, undone, noKeys(servers[1:]))
	})
}

func TestOneServerReachedByTwoAddressesIsRefused(t *testing.T) {
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 2)
		twice := strings.Replace(servers[0].URL(), "127.0.0.1", "localhost", 1)
		c, err := redlatch.New(nodes(servers[0].URL(), servers[1].URL(), twice), &redlatch.Options{NodeTimeout: patient})
		if err == nil { // it returned before the nodes had answered, as on a busy machine
			defer c.Close()
			_, err = c.TryLock(context.Background(), "job", nil)
		}
		wantErr(t, err, redlatch.ErrConfig)
		if !strings.Contains(err.Error(), servers[0].URL()) || !strings.Contains(err.Error(), twice) {
			t.Errorf("%v does not name both", err)
		}
	})
}

// TestCallersThatLeaveAfterMillisecondsLeaveNothing has a crowd lock one name with
// deadlines so short that most of them leave while servers are being asked.
func TestCallersThatLeaveAfterMillisecondsLeaveNothing(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		t.Parallel()
		servers := servertest.Redis(t, 5)
		var opts redlatch.Options
		clientaccess.SetNoHandOver(&opts)
		c := newClient(t, nodes(servertest.Addresses(servers)...), opts)
		for range 3 {
			var crowd sync.WaitGroup
			for range 64 {
				crowd.Go(func() {
					for range 40 {
						ctx, cancel := context.WithTimeout(context.Background(), rand.N(6*time.Millisecond))
						if l, err := c.Lock(ctx, "job", nil); err == nil {
							l.Release(context.Background())
						}
						cancel()
					}
				})
			}
			crowd.Wait()
			eventually(t, undone, nothingLeft(servers, "job"))
		}
	})
}
