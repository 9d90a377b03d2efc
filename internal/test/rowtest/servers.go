//go:build unix

package rowtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
)

func frozen(t *testing.T, h Harness) {
	server, n, _ := h.open(t, Settings{})
	want(t, n, request(node.OpAcquire, "first"), node.Granted)
	server.Freeze()
	if err := within(t, n, request(node.OpExtend, "first"), 300*time.Millisecond); err == nil {
		t.Error("a frozen server has answered")
	}
	server.Thaw()
	stillHeld(t, n)
	want(t, n, request(node.OpRelease, "first"), node.Granted)
}

func restarted(t *testing.T, h Harness) {
	server, n, _ := h.open(t, Settings{})
	c := client(t, n)
	lease, err := c.Lock(context.Background(), "job", &redlatch.LockOptions{TTL: time.Minute, NoKeepAlive: true})
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if err := within(t, n, request(node.OpInspect, ""), time.Second); err == nil {
		t.Error("a server that was killed has answered")
	}
	server.Restart()
	// What it acknowledged it still has, so it is trusted at once.
	poll.Holds(patience, func() bool {
		_, err = c.TryLock(context.Background(), "job", nil)
		return errors.Is(err, redlatch.ErrHeld) || errors.Is(err, redlatch.ErrQuarantine)
	})
	if !errors.Is(err, redlatch.ErrHeld) || errors.Is(err, redlatch.ErrQuarantine) {
		t.Errorf("after the restart: %v, want ErrHeld", err)
	}
	if err := lease.Release(context.Background()); err != nil {
		t.Error(err)
	}
}

// bounds make a short quarantine.
var bounds = redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 2 * time.Second, TokenWindow: 500 * time.Millisecond}, NodeTimeout: 2 * time.Second, AssumeFresh: true}

func client(t testing.TB, n node.Node) *redlatch.Client {
	t.Helper()
	opts := bounds
	opts.MaxTTL = time.Minute
	return newClient(t, opts, n)
}

func newClient(t testing.TB, opts redlatch.Options, nodes ...redlatch.Node) *redlatch.Client {
	t.Helper()
	c, err := redlatch.New(nodes, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// failedOver has a replica that lacks a lock take the server's place, behind the
// same address.
func failedOver(t *testing.T, h Harness) {
	primary := h.Start(t)
	proxy := servertest.NewProxy(t, primary)
	n := h.node(t, primary.Through(proxy.Addr()), Settings{})
	c := newClient(t, bounds, n)
	if err := c.Do(context.Background(), "other", nil, func(context.Context, *redlatch.Lease) error { return nil }); err != nil {
		t.Fatal(err)
	}
	replica, promote := h.Follow(t, primary)
	replica.Freeze()
	lease, err := c.Lock(context.Background(), "job", &redlatch.LockOptions{NoKeepAlive: true})
	if err != nil {
		t.Fatal(err)
	}
	primary.Kill()
	replica.Thaw()
	promote()
	proxy.LeadTo(replica.Addr())
	proxy.Cut()
	quarantined := false
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		second, err := c.TryLock(context.Background(), "job", nil)
		if err == nil {
			if !quarantined {
				t.Error("the replica was never quarantined")
			}
			if lease.Err() == nil {
				t.Error("the lock was granted while it was held")
			}
			if second.Token() <= lease.Token() {
				t.Errorf("token %v after %v", second.Token(), lease.Token())
			}
			return
		}
		quarantined = quarantined || errors.Is(err, redlatch.ErrQuarantine)
	}
	t.Error("the replica never granted the lock")
}
