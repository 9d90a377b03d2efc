//go:build unix

package service_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// holdFor is long compared to these tests: nothing expires in them.
const holdFor = 30 * time.Second

var kept = []string{"--appendonly", "yes", "--appendfsync", "always"}

// onThree has hold take the lock while the last two of five servers are down,
// restarts these with their data, and the third without. Of the servers that
// granted it, two remember.
func onThree(t testing.TB, servers []*servertest.Server, hold func()) {
	t.Helper()
	for _, s := range servers[3:] {
		s.Kill()
	}
	hold()
	for _, s := range servers[3:] {
		s.Restart(kept...)
	}
	servers[2].Kill()
	servers[2].Restart("--appendonly", "no")
	if n := len(servers[2].Keys()); n != 0 {
		t.Fatalf("the server that was to forget has %d keys", n)
	}
}

func redsyncMutex(t testing.TB, servers []*servertest.Server) *redsync.Mutex {
	return newRedsync(t, servers).NewMutex(name, redsync.WithExpiry(holdFor), redsync.WithTries(1), redsync.WithTimeoutFactor(0.3))
}

// TestRedlatchDoesNotBelieveAServerThatForgotWhatRedsyncHolds is where the
// guard helps a client that has none: redsync's lock is held on two servers
// that remember, and the three others would be a quorum.
func TestRedlatchDoesNotBelieveAServerThatForgotWhatRedsyncHolds(t *testing.T) {
	t.Parallel()
	for _, guard := range []redlatch.GuardMode{redlatch.GuardOn, redlatch.GuardOff} {
		t.Run(map[bool]string{true: "guard on", false: "guard off"}[guard == redlatch.GuardOn], func(t *testing.T) {
			t.Parallel()
			stall.Retry(t, ttl, func(t testing.TB) { forgetWhatRedsyncHolds(t, guard) })
		})
	}
}

// forgetWhatRedsyncHolds asks for the lock until the servers that restarted
// have answered: the first tries may use connections that the restarts broke.
func forgetWhatRedsyncHolds(t testing.TB, guard redlatch.GuardMode) {
	servers := servertest.Redis(t, 5, kept...)
	locks := newRedlatch(t, servers, redlatch.Options{Guard: guard, Cluster: redlatch.Cluster{MaxTTL: 2 * holdFor}})
	m := redsyncMutex(t, servers)
	onThree(t, servers, func() { poll.Within(t, mostTime, m.Lock) })
	var err error
	for range 50 {
		var lease *redlatch.Lease
		if lease, err = locks.TryLock(t.Context(), name, &redlatch.LockOptions{TTL: ttl}); lease != nil {
			defer lease.Release(context.Background())
		}
		switch {
		case time.Now().After(m.Until()):
			stall.TooLate(t, "redsync's lock of %v expired; redlatch last got %v", holdFor, err)
		case guard == redlatch.GuardOn && err == nil:
			t.Fatal("redlatch has the lock that redsync holds")
		case guard == redlatch.GuardOn && errors.Is(err, redlatch.ErrQuarantine), guard == redlatch.GuardOff && err == nil:
			return
		}
		time.Sleep(retryDelay)
	}
	if guard == redlatch.GuardOn {
		t.Errorf("redlatch got %v, want that servers are quarantined", err)
	} else {
		t.Errorf("with the guard off redlatch got %v: then this test shows nothing", err)
	}
}

// TestRedsyncTakesWhatAServerForgotAndTheLossIsTold is where the guard cannot
// help: redsync trusts the server that forgot, and both have the lock. Then the
// next extension reports the loss to redlatch, and the token keeps the stale
// holder off the resource.
func TestRedsyncTakesWhatAServerForgotAndTheLossIsTold(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 5, kept...)
	locks := newRedlatch(t, servers, redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 2 * holdFor}})
	var lease *redlatch.Lease
	onThree(t, servers, func() {
		poll.Within(t, mostTime, func() (err error) {
			lease, err = locks.Lock(t.Context(), name, &redlatch.LockOptions{TTL: holdFor})
			return err
		})
	})
	m := redsyncMutex(t, servers)
	if err := m.Lock(); err != nil {
		t.Fatalf("redsync is refused, and this test shows nothing: %v", err)
	}
	if lease.Err() == nil {
		t.Log("both have the lock")
	}
	select {
	case <-lease.Context().Done():
	case <-time.After(holdFor):
		t.Fatal("redlatch is not told")
	}
	if cause := context.Cause(lease.Context()); !errors.Is(cause, redlatch.ErrLost) {
		t.Errorf("redlatch is told %v, want that its lock is lost", cause)
	}
	if ok, err := m.Unlock(); !ok || err != nil {
		t.Fatal(ok, err)
	}

	gate, err := fence.NewGate(nil)
	must(t, err)
	must(t, gate.Check(t.Context(), name, lease.Token()))
	// The servers that were down are a majority and are quarantined; with these
	// cluster parameters that takes longer than a test may. A client without
	// the guard shows the next token as well.
	open := newRedlatch(t, servers, redlatch.Options{Guard: redlatch.GuardOff})
	var next *redlatch.Lease
	poll.Within(t, mostTime, func() (err error) {
		next, err = open.Lock(t.Context(), name, &redlatch.LockOptions{TTL: ttl, Wait: holdFor})
		return err
	})
	defer next.Release(t.Context())
	if err := gate.Check(t.Context(), name, next.Token()); err != nil {
		t.Errorf("the next holder is refused: %v", err)
	}
	if err := gate.Check(t.Context(), name, lease.Token()); !errors.Is(err, fence.ErrStale) {
		t.Errorf("the stale holder is told %v, want that its token is stale", err)
	}
}
