//go:build unix

package store

import (
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node/casnode"
	"github.com/redlatch/redlatch/node/casnode/casnodetest"
)

// snippet: conformance
func TestConformance(t *testing.T) {
	servers := servertest.Redis(t, 2)
	one, other := servers[0].Addr(), servers[1].Addr()
	casnodetest.Run(t, casnodetest.Harness{
		Open:   func(testing.TB) (a, b casnode.Store) { return open(one), open(one) },
		Apart:  func(testing.TB) (a, b casnode.Store) { return open(one), open(other) },
		Sweeps: true, Hears: true,
	})
}

// end snippet

// TestRestartedServerIsQuarantined has a server forget a lock that is held.
func TestRestartedServerIsQuarantined(t *testing.T) {
	server := servertest.Redis(t, 1)[0]
	locks, err := redlatch.New([]redlatch.Node{Open(server.Addr())}, &redlatch.Options{AssumeFresh: true, Cluster: redlatch.Cluster{MaxTTL: 3 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	first, err := locks.Lock(t.Context(), "job", &redlatch.LockOptions{NoKeepAlive: true})
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	server.Restart()
	quarantined := false
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		second, err := locks.TryLock(t.Context(), "job", nil)
		quarantined = quarantined || errors.Is(err, redlatch.ErrQuarantine)
		if err != nil {
			continue
		}
		if !quarantined || first.Remaining() > 0 || second.Token() <= first.Token() {
			t.Errorf("granted again: quarantined %v, %v left, tokens %v and %v", quarantined, first.Remaining(), first.Token(), second.Token())
		}
		return
	}
	t.Error("the lock was never granted again")
}
