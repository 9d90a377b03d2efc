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
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
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
		var busy *redis.ServerError
		if !errors.As(err, &busy) || busy.Code != "BUSY" || !strings.Contains(err.Error(), "SCRIPT KILL stops it") {
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

func TestMinorityBusyWithAScriptIsDoneWithout(t *testing.T) {
	t.Parallel()
	eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
		servers := startBusy(t, 3)
		addresses := servertest.Addresses(servers)
		c := newClient(t, nodes(addresses...), quick)
		const ttl = 2 * time.Second
		l := holdOnAll(t, c, servers, "kept", redlatch.LockOptions{TTL: ttl})
		occupy(t, servers[0])
		begin := time.Now()
		for end := begin.Add(ttl + ttl/5); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if err := cycle(c); err != nil {
				stall.Busy(t, starved, begin) // the two others have a second to answer
				t.Fatalf("with one of three busy: %v", err)
			}
		}
		if err := l.Err(); err != nil {
			stall.Busy(t, starved, begin)
			t.Errorf("with one of three busy: %v", err)
		}
		servers[0].Do("SCRIPT", "KILL")
		eventually(t, patience, func() error {
			_, err := servers[0].Try("GET", "kept")
			return err
		})
		eventually(t, patience, heldOnAll(servers, l.Name()))
		mustRelease(t, l)
		eventually(t, undone, noKeys(servers))
	})
}

// TestServerThatLoadsItsDataIsDoneWithoutAndSitsOut restarts one of three
// servers with so much data that loading it takes seconds.
func TestServerThatLoadsItsDataIsDoneWithoutAndSitsOut(t *testing.T) {
	t.Parallel()
	servertest.Since(t, 7, noLoading)
	servers := servertest.Redis(t, 3)
	addresses := servertest.Addresses(servers)
	c := newClient(t, open(t, addresses...), quick)
	l := holdOnAll(t, c, servers, "kept", redlatch.LockOptions{TTL: 2 * time.Second})
	s := servers[0]
	s.Do("EVAL", "for i=1,3000 do redis.call('SET', 'filler'..i, string.rep('x', 100)) end", "0")
	s.Do("SAVE")
	s.Kill()
	s.RestartNow("--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
	loading := 0
	eventually(t, patience, func() error {
		if err := cycle(c); err != nil {
			t.Fatalf("with one of three loading: %v", err)
		}
		_, err := s.Try("GET", "x")
		if err != nil && strings.HasPrefix(err.Error(), "LOADING") {
			loading++
		}
		return err
	})
	if loading == 0 {
		t.Fatal("the server never said that it is loading: nothing is shown")
	}
	// The two others are a majority: not every attempt waits for this server.
	eventually(t, patience, func() error {
		must(t, cycle(c))
		if marker := s.Do("GET", "redlatch:1:marker"); !strings.Contains(marker, " changed ") {
			return fmt.Errorf("after loading it is marked %q, want it in quarantine", marker)
		}
		return nil
	})
	eventually(t, patience, heldOnAll(servers, l.Name()))
	must(t, l.Err())
	mustRelease(t, l)
}
