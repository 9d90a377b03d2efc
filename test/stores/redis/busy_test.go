//go:build unix

package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis"
)

// startBusy returns a server that soon answers BUSY when a script runs too
// long.
func startBusy(t testing.TB, n int) []*servertest.Server {
	t.Helper()
	return servertest.Redis(t, n, "--lua-time-limit", "50")
}

// occupy has a server run an endless script, and returns when it answers BUSY.
func occupy(t testing.TB, s *servertest.Server) {
	t.Helper()
	go s.Try("EVAL", "while true do end", "0")
	eventually(t, patience, func() error {
		if _, err := s.Try("GET", "x"); err == nil || !strings.HasPrefix(err.Error(), "BUSY") {
			return errors.New("the server is not busy yet")
		}
		return nil
	})
}

// endOf returns when a lease's context ended. A goroutine that waits for the
// context itself may be scheduled much later.
func endOf(l *redlatch.Lease) <-chan time.Time {
	at := make(chan time.Time, 1)
	context.AfterFunc(l.Context(), func() { at <- time.Now() })
	return at
}

// TestServerBusyWithAScriptEndsTheLeaseAtItsDeadline keeps the only server busy
// with a foreign script.
func TestServerBusyWithAScriptEndsTheLeaseAtItsDeadline(t *testing.T) {
	t.Parallel()
	eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
		server := startBusy(t, 1)[0]
		c := newClient(t, nodes(server.URL()), redlatch.Options{})
		l := mustLock(t, c, "job", redlatch.LockOptions{TTL: time.Second})
		ended, start := endOf(l), time.Now()
		occupy(t, server)
		_, err := c.TryLock(context.Background(), "another", nil)
		wantErr(t, err, redlatch.ErrNoQuorum)
		if busy, ok := errors.AsType[*redis.ServerError](err); !ok || busy.Code != "BUSY" || !strings.Contains(err.Error(), "SCRIPT KILL stops it") {
			t.Errorf("got %v, want BUSY and what to do", err)
		}
		t.Log("who asks is told:", err)
		at := <-ended
		wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
		if late := at.Sub(l.Deadline()); over(t, late, slack, start) {
			t.Errorf("it was told %v after the deadline", late)
		}
		server.Do("SCRIPT", "KILL")
		next := mustLock(t, c, "job", redlatch.LockOptions{Wait: time.Minute})
		if next.Token() <= l.Token() {
			exclusion.Never(t, "token %d came after %d", next.Token(), l.Token())
		}
		mustRelease(t, next)
		eventually(t, undone, noKeys([]*servertest.Server{server}))
	})
}
