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
	"github.com/redlatch/redlatch/internal/inside"
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

func TestQuorumOutlivesAMinority(t *testing.T) {
	eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 5)
		c := newClient(t, nodes(servertest.Addresses(servers)...), redlatch.Options{})
		if err := cycle(c); err != nil {
			t.Fatalf("five of five: %v", err)
		}
		servers[0].Kill()
		servers[3].Kill()
		if err := cycle(c); err != nil {
			t.Fatalf("three of five: %v", err)
		}
		servers[2].Kill()
		// The first request finds the connections broken; both it and the next
		// get an error at once.
		for range 2 {
			start := time.Now()
			_, err := c.TryLock(context.Background(), "job", nil)
			wantErr(t, err, redlatch.ErrNoQuorum)
			if took := time.Since(start); over(t, took, 2*time.Second, start) {
				t.Errorf("it took %v to say so, with a node time limit of 1s", took)
			}
			var q *redlatch.QuorumError
			if !errors.As(err, &q) || len(q.Nodes) != 5 {
				t.Fatalf("got %v, want what each of the five said", err)
			}
			for i, r := range q.Nodes {
				if dead := i == 0 || i == 3 || i == 2; dead && r.Err == nil {
					t.Errorf("server %d is dead and said %v", i, r)
				}
			}
		}
		eventually(t, undone, noKeys([]*servertest.Server{servers[1], servers[4]}))
	})
}

func TestLeaseOnAFrozenQuorumEndsAtItsDeadline(t *testing.T) {
	eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 5)
		// The node time limit is far beyond the deadline: the return of a call
		// cannot be what ends the lease.
		c := newClient(t, nodes(servertest.Addresses(servers)...), redlatch.Options{NodeTimeout: 20 * time.Second})
		l, err := c.Lock(context.Background(), "job", &redlatch.LockOptions{TTL: time.Second})
		must(t, err)
		ended, start := endOf(l), time.Now()
		for _, s := range servers[1:4] {
			s.Freeze()
		}
		at := <-ended
		// An extension that was in flight may have moved the deadline once;
		// after that it is fixed.
		late := at.Sub(l.Deadline())
		wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
		if over(t, late, 100*time.Millisecond, start) {
			t.Errorf("the context ended %v after the deadline", late)
		}
		for _, s := range servers[1:4] {
			s.Thaw()
		}
		eventually(t, undone, noKeys(servers))
	})
}

func TestOneServerReachedByTwoAddressesIsRefused(t *testing.T) {
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 2)
		twice := strings.Replace(servers[0].URL(), "127.0.0.1", "localhost", 1)
		c, err := redlatch.New(nodes(servers[0].URL(), servers[1].URL(), twice), &redlatch.Options{NodeTimeout: 5 * time.Second})
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

func TestPlainClientsAndWeExcludeEachOther(t *testing.T) {
	servers := servertest.Redis(t, 3)
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		c := newClient(t, nodes(servertest.Addresses(servers)...), redlatch.Options{})
		for _, s := range servers {
			s.Do("SET", "job", "20-random-bytes", "NX", "PX", "300")
		}
		_, err := c.TryLock(context.Background(), "job", nil)
		wantErr(t, err, redlatch.ErrHeld)
		l, err := c.Lock(context.Background(), "job", nil)
		must(t, err)
		refused := 0
		for _, s := range servers {
			if s.Do("SET", "job", "20-random-bytes", "NX", "PX", "300") == "" {
				refused++
			}
		}
		if refused < 2 {
			t.Errorf("only %d of 3 servers refused a plain client", refused)
		}
		l.Release(context.Background())
		for _, s := range servers {
			s.Do("DEL", "job")
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
		inside.SetNoHandOver(&opts)
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
			eventually(t, undone, noKeys(servers))
			eventually(t, undone, noPlaces(servers))
		}
	})
}

// noPlaces complains if anybody waits on any server.
func noPlaces(servers []*servertest.Server) func() error {
	return func() error {
		for i, s := range servers {
			if queues := s.Do("KEYS", queueOf("*")); queues != "" {
				return fmt.Errorf("server %d has %q", i, queues)
			}
		}
		return nil
	}
}
