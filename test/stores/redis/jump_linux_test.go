package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/clockshim"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// withClocks returns three servers whose wall clocks can be set.
func withClocks(t testing.TB) (servers []*servertest.Server, clocks []*clockshim.Clock) {
	t.Helper()
	for range 3 {
		s, c := servertest.StartWithSettableClock(t, 0)
		servers, clocks = append(servers, s), append(clocks, c)
	}
	return servers, clocks
}

// TestServerWhoseClockJumpsIsNamedAndLetsNobodyIn sets one clock of three by
// more than the window, under a lease that is held on that server and one
// other.
func TestServerWhoseClockJumpsIsNamedAndLetsNobodyIn(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{time.Minute, -time.Minute} {
		t.Run(jump.String(), func(t *testing.T) {
			t.Parallel()
			servers, clocks := withClocks(t)
			addresses := servertest.Addresses(servers)
			opts, log := logged(redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 20 * time.Second}})
			first, second := newClient(t, open(t, addresses...), opts), newClient(t, open(t, addresses...), opts)
			must(t, cycle(second))
			l := hold(t, first, servers...)
			servers[2].Do("DEL", "job")
			clocks[0].Set(jump, 0)
			// A server may use a time that it has read a moment ago.
			eventually(t, patience, func() error {
				if gone := servers[0].Do("GET", "job") == ""; gone != (jump > 0) {
					return fmt.Errorf("the clock was set by %v, and the lock is gone: %v", jump, gone)
				}
				return nil
			})
			_, err := second.TryLock(context.Background(), "job", nil)
			t.Log("who asks is told:", err)
			if err == nil || l.Err() != nil {
				exclusion.Never(t, "two holders, or none: %v, %v", err, l.Err())
			}
			eventually(t, patience, func() error {
				second.TryLock(context.Background(), "job", nil)
				if text := log.String(); !strings.Contains(text, "clock differs from the majority") || !strings.Contains(text, servers[0].Addr()) {
					return errors.New("the log does not name the server: " + text)
				}
				return nil
			})
			// With the clock set forward, two of three report that there is no
			// such lock.
			if err := l.Release(context.Background()); errors.Is(err, redlatch.ErrLost) != (jump > 0) {
				t.Errorf("the release is told %v", err)
			}
			clocks[0].Set(0, 0)
			eventually(t, patience, func() error {
				if err := cycle(second); err != nil {
					return err
				}
				if !strings.Contains(log.String(), "clock is right again") {
					return errors.New("the log does not say that it is right again")
				}
				return nil
			})
			eventually(t, undone, noKeys(servers))
		})
	}
}
