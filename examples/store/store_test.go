//go:build unix

package store

import (
	"errors"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/casnode"
	"github.com/redlatch/redlatch/store/casnode/casnodetest"
)

// snippet: conformance
func TestConformance(t *testing.T) {
	servers := servertest.Redis(t, 2)
	one, other := servers[0].Addr(), servers[1].Addr()
	casnodetest.Run(t, casnodetest.Harness{
		Open:   func(testing.TB) (a, b casnode.Store) { return open(one), open(one) },
		Apart:  func(testing.TB) (a, b casnode.Store) { return open(one), open(other) },
		Sweeps: true, Hears: true, Places: true,
	})
}

// end snippet

// TestRestartedServerIsQuarantined has a server forget a lock that is held.
func TestRestartedServerIsQuarantined(t *testing.T) {
	server := servertest.Redis(t, 1)[0]
	locks, err := redlatch.New([]redlatch.Node{Open(server.Addr())}, &redlatch.Options{AssumeFresh: true})
	check.Must(t, err)
	defer locks.Close()
	_, err = locks.Lock(t.Context(), "job", nil)
	check.Must(t, err)
	server.Kill()
	server.Restart()
	poll.Within(t, time.Minute, func() error {
		lease, err := locks.TryLock(t.Context(), "job", nil)
		if err == nil {
			exclusion.Never(t, "granted again with token %v", lease.Token())
		}
		if errors.Is(err, redlatch.ErrQuarantine) {
			return nil
		}
		return err
	})
}
