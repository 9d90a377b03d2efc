//go:build unix

package redis_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// Each test here has a request of one holder arrive when the next holder has
// the lock.

// slowLine returns two clients of one server. Requests of the first can be held
// up, and its time limit is long.
func slowLine(t testing.TB, nodes func(...string) []redlatch.Node) (s *servertest.Server, p *servertest.Proxy, slow, other *redlatch.Client) {
	t.Helper()
	s = servertest.Redis(t, 1)[0]
	p = servertest.NewProxy(t, s)
	slow = newClient(t, nodes(p.URL()), redlatch.Options{NodeTimeout: 10 * time.Second})
	other = newClient(t, nodes(s.URL()), redlatch.Options{})
	for _, c := range []*redlatch.Client{slow, other} { // both are connected, and the scripts are known
		must(t, cycle(c))
	}
	return s, p, slow, other
}

func TestReleaseThatComesLateLeavesTheNextHolderAlone(t *testing.T) {
	t.Parallel()
	withDriver(t, "goredis", func(t *testing.T, nodes func(...string) []redlatch.Node) {
		server, proxy, slow, other := slowLine(t, nodes)
		const ttl = 800 * time.Millisecond
		l := mustLock(t, slow, "job", redlatch.LockOptions{TTL: ttl, NoKeepAlive: true})
		waiting := goLock(other, "job", redlatch.LockOptions{TTL: 20 * time.Second})
		proxy.Delay(ttl + 100*time.Millisecond) // after the expiry, on a clock that a server read a moment ago too
		told := make(chan error, 1)
		go func() { told <- l.Release(context.Background()) }()
		next := mustGet(t, waiting, patience)
		if next.Token() <= l.Token() {
			exclusion.Never(t, "token %d came after %d", next.Token(), l.Token())
		}
		theirs := server.Do("GET", "job")
		err := <-told
		t.Log("who released is told:", err)
		if !errors.Is(err, redlatch.ErrLost) && !errors.Is(err, redlatch.ErrNoQuorum) {
			t.Errorf("a release that came too late is told %v", err)
		}
		proxy.Delay(0)
		if now := server.Do("GET", "job"); now != theirs || theirs == "" {
			t.Errorf("the next holder's lock was %q, and is %q", theirs, now)
		}
		if err := next.Extend(context.Background()); err != nil {
			t.Errorf("the next holder: %v", err)
		}
	})
}

func TestReleasesUnderWayDoNotTakeBackWhatTheNextAttemptWasGranted(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		servers := servertest.Redis(t, 3)
		proxies, urls := servertest.NewProxies(t, servers)
		c := newClient(t, nodes(urls...), redlatch.Options{})
		must(t, cycle(c))
		proxies[2].Delay(50 * time.Millisecond) // always a few requests behind
		for range 50 {
			l := mustLock(t, c, "job", redlatch.LockOptions{TTL: 2 * time.Second})
			must(t, l.Release(context.Background()))
		}
		// The slow server refuses while it has not received the previous
		// release; the first extension repairs that.
		l := mustLock(t, c, "job", redlatch.LockOptions{TTL: 2 * time.Second})
		eventually(t, patience, heldOnAll(servers, "job"))
		// After this, every request in flight to the slow server has arrived.
		time.Sleep(300 * time.Millisecond)
		if err := heldOnAll(servers, "job")(); err != nil {
			t.Errorf("a release of before took away what was granted after it: %v", err)
		}
		mustRelease(t, l)
		eventually(t, undone, noKeys(servers))
	})
}

// TestExtensionThatComesAfterTheExpiryIsTooLate has the extension arrive when
// the lock has expired, and is free or held by another client.
func TestExtensionThatComesAfterTheExpiryIsTooLate(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{false, true} {
		t.Run("taken "+strconv.FormatBool(taken), func(t *testing.T) {
			t.Parallel()
			timedWith(t, "rueidis", func(t testing.TB, nodes func(...string) []redlatch.Node) {
				server, proxy, slow, other := slowLine(t, nodes)
				const ttl = 800 * time.Millisecond
				l := mustLock(t, slow, "job", redlatch.LockOptions{TTL: ttl, NoKeepAlive: true})
				var waiting <-chan got
				if taken {
					waiting = goLock(other, "job", redlatch.LockOptions{TTL: longTTL, NoKeepAlive: true})
				}
				began := time.Now()
				proxy.Delay(ttl + ttl/4)
				told := make(chan error, 1)
				go func() { told <- l.Extend(context.Background()) }()
				<-l.Context().Done()
				wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
				theirs, left := "", "-2"
				if taken {
					next := mustGet(t, waiting, patience)
					if next.Token() <= l.Token() {
						exclusion.Never(t, "token %d came after %d", next.Token(), l.Token())
					}
					theirs, left = server.Do("GET", "job"), server.Do("PTTL", "job")
				} else {
					eventually(t, undone, noKeys([]*servertest.Server{server}))
				}
				err := <-told
				t.Log("who extended is told:", err)
				if err == nil || l.Err() == nil {
					t.Errorf("an extension after the expiry was confirmed: %v, %v", err, l.Err())
				}
				// Requests arrive in the order in which they were sent. The
				// release of the lost lease follows the extension, so the key
				// must be read before the release arrives.
				later := goLock(slow, "another", redlatch.LockOptions{TTL: 20 * time.Second})
				for arrived := false; !arrived; time.Sleep(time.Millisecond) {
					if now := server.Do("GET", "job"); now != theirs {
						stall.In(t, longTTL, began) // the next holder does not extend it
						t.Fatalf("after the extension %q has the lock, before it was %q", now, theirs)
					}
					select {
					case g := <-later:
						if g.err != nil {
							stall.Busy(t, starved, began)
							t.Fatal(g.err)
						}
						arrived = true
					default:
					}
				}
				proxy.Delay(0)
				if now := server.Do("PTTL", "job"); number(t, now) > number(t, left) {
					t.Errorf("after the extension the lock has %s ms, before it were %s", now, left)
				}
			})
		})
	}
}

func number(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}
