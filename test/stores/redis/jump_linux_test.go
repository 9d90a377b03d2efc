package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/fence"
	"github.com/redlatch/redlatch/internal/test/clockshim"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/locktest"
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

// TestJumpWithinTheWindowCanMakeTwoHoldersAndTheTokenTellsThem violates an
// assumption of exclusion: the one server that two majorities share has its
// clock set forward by more than the time that the lock has left.
func TestJumpWithinTheWindowCanMakeTwoHoldersAndTheTokenTellsThem(t *testing.T) {
	t.Parallel()
	servers, clocks := withClocks(t)
	addresses := servertest.Addresses(servers)
	opts := redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 20 * time.Second}, TTL: 5 * time.Second}
	first, second := newClient(t, open(t, addresses...), opts), newClient(t, open(t, addresses...), opts)
	must(t, cycle(second))
	l := hold(t, first, servers...)
	// While the lock is held on all servers, one clock makes no second holder.
	clocks[0].Set(6*time.Second, 0)
	_, err := second.TryLock(context.Background(), "job", nil)
	wantErr(t, err, redlatch.ErrHeld)
	eventually(t, undone, noKeys(servers[:1])) // it was granted without a quorum
	servers[2].Do("DEL", "job")
	next, err := second.TryLock(context.Background(), "job", nil)
	if err != nil || l.Err() != nil {
		t.Fatalf("there should be two holders: %v, and the first is %v", err, l.Err())
	}
	if next.Token() <= l.Token() {
		exclusion.Never(t, "token %d came after %d", next.Token(), l.Token())
	}
	staleIsRefused(t, servers[1], l, next)
}

// staleIsRefused has both of two holders write, the second first.
func staleIsRefused(t testing.TB, s *servertest.Server, stale, next *redlatch.Lease) {
	t.Helper()
	store, err := fence.NewRedis(subscribers["rueidis"](t, s), nil)
	must(t, err)
	must(t, store.Set(context.Background(), "data", "by the second", next.Token(), 0))
	err = store.Set(context.Background(), "data", "by the first", stale.Token(), 0)
	wantErr(t, err, fence.ErrStale)
	t.Log("who writes with the lower token is told:", err)
	if got := s.Do("GET", "fence:{data}:value"); got != "by the second" {
		t.Errorf("the data is %q", got)
	}
}

// TestClocksSetBackKeepADeadHoldersLockUntilItIsBroken shows the limit of "no
// deadlock": a majority of clocks is set back under a holder that then dies.
func TestClocksSetBackKeepADeadHoldersLockUntilItIsBroken(t *testing.T) {
	t.Parallel()
	servers, clocks := withClocks(t)
	addresses := servertest.Addresses(servers)
	first := newClient(t, open(t, addresses...), quick)
	l := holdOnAll(t, first, servers, "job", redlatch.LockOptions{TTL: 2 * time.Second, NoKeepAlive: true})
	if _, err := l.Detach(); err != nil { // nobody undoes it: the holder is dead
		t.Fatal(err)
	}
	for _, c := range clocks {
		c.Set(-time.Hour, 0)
	}
	second := laterClient(t, quick, addresses...)
	_, err := second.TryLock(context.Background(), "job", nil)
	wantErr(t, err, redlatch.ErrQuarantine) // until a moment that is now an hour away
	eventually(t, patience, func() error {
		if _, err = second.TryLock(context.Background(), "job", nil); errors.Is(err, redlatch.ErrHeld) {
			return nil
		}
		return err
	})
	t.Log("who asks is told:", err)
	var held *redlatch.HeldError
	if !errors.As(err, &held) || held.Holders[0].Left < 59*time.Minute {
		t.Errorf("got %v, want it held for an hour yet", err)
	}
	if _, err := admin.New(second).Break(context.Background(), "job", nil); err != nil {
		t.Fatal(err)
	}
	next, err := second.TryLock(context.Background(), "job", nil)
	must(t, err)
	if next.Token() <= l.Token() {
		exclusion.Never(t, "token %d came after %d, an hour back", next.Token(), l.Token())
	}
}

// jumpyClock is a wall clock that can be set; its monotonic reading continues.
type jumpyClock struct {
	start time.Time
	by    atomic.Int64
}

func (c *jumpyClock) Now() time.Time        { return time.Now().Add(time.Duration(c.by.Load())) }
func (c *jumpyClock) Uptime() time.Duration { return time.Since(c.start) }

// TestHolderWhoseClockJumpsKeepsItsLock sets the wall clock of a client forward
// and back.
func TestHolderWhoseClockJumpsKeepsItsLock(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 3)
		addresses := servertest.Addresses(servers)
		clock := &jumpyClock{start: time.Now()}
		opts := redlatch.Options{TTL: longTTL}
		other := newClient(t, nodes(addresses...), opts)
		opts = locktest.WithClock(opts, clock)
		jumpy := newClient(t, nodes(addresses...), opts)
		l := holdOnAll(t, jumpy, servers, "job", redlatch.LockOptions{})
		var last redlatch.Token
		for _, by := range []time.Duration{time.Hour, -time.Hour, 0, 24 * 365 * time.Hour, -24 * 365 * time.Hour} {
			clock.by.Store(int64(by))
			for _, c := range []*redlatch.Client{jumpy, other, jumpy} {
				next := mustLock(t, c, "turns", redlatch.LockOptions{})
				if next.Token() <= last {
					exclusion.Never(t, "clock set by %v: token %d came after %d", by, next.Token(), last)
				}
				last = next.Token()
				mustRelease(t, next)
			}
			if err := l.Extend(context.Background()); err != nil {
				t.Errorf("clock set by %v: %v", by, err)
			}
			_, err := other.TryLock(context.Background(), "job", nil)
			wantErr(t, err, redlatch.ErrHeld)
		}
		if away := time.Until(time.UnixMicro(int64(last))).Abs(); away > time.Minute {
			t.Errorf("the last token is %v away from the servers' time", away)
		}
		mustRelease(t, l)
		eventually(t, undone, noKeys(servers))
	})
}
