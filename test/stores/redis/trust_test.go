//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredisclient "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis/goredis"
)

// Each test here tries to bring nodes into service on false evidence.

// hold takes a lock that is held on every one of the servers and is not
// extended. A lock needs only a quorum, so on a busy machine it can take more
// than one try until all have it.
func hold(t testing.TB, c *redlatch.Client, servers ...*servertest.Server) *redlatch.Lease {
	t.Helper()
	// All have the same value: a request of an earlier lock that was late may have
	// left its own on a minority, until that is undone.
	missing := func() string {
		first := servers[0].Do("GET", "job")
		for _, s := range servers {
			if value := s.Do("GET", "job"); value == "" || value != first {
				return s.Addr()
			}
		}
		return ""
	}
	for range 20 {
		eventually(t, undone, noKeys(servers))
		l, err := c.Lock(context.Background(), "job", &redlatch.LockOptions{NoKeepAlive: true})
		must(t, err)
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if missing() == "" {
				return l
			}
		}
		l.Release(context.Background())
	}
	t.Fatalf("in twenty tries the lock never stood on %s", missing())
	return nil
}

// wantNoSecond fails if c is granted the lock while l is valid.
func wantNoSecond(t testing.TB, c *redlatch.Client, l *redlatch.Lease) {
	t.Helper()
	for l.Remaining() > 0 {
		l2, err := c.TryLock(context.Background(), l.Name(), nil)
		if err == nil && l.Remaining() > 0 {
			exclusion.Never(t, "two holders: the first for %v yet, the second for %v", l.Remaining(), l2.Remaining())
		}
		if err == nil { // at the moment at which the first was over
			l2.Release(context.Background())
		}
		time.Sleep(20 * time.Millisecond) // asking again and again is the point
	}
}

func TestServerThatIsReachedTwiceLaterIsNotCountedTwice(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	proxies, urls := servertest.NewProxies(t, servers)
	opts := quick
	opts.Membership = "prod"
	first := newClient(t, open(t, servertest.Addresses(servers)...), opts)
	rerouted := newClient(t, open(t, urls...), opts)
	must(t, cycle(rerouted))
	l := hold(t, first, servers...)
	servers[1].Do("DEL", "job")
	proxies[0].LeadTo(servers[1].Addr())
	proxies[0].Cut()
	wantNoSecond(t, rerouted, l)
}

func TestMarkerOfAnEarlierVersionIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	opts := quick
	opts.Guard = redlatch.GuardOn
	const former = "1 dd4b68befc31fa69359eaf9de7af049cd651e0ab 8fd65869eaf57c00 2000 500000 2133 1794740042136691 new redis://a:1"
	server.Do("SET", "redlatch:1:marker", former)
	c := laterClient(t, opts, server.URL())
	_, err := c.TryLock(context.Background(), "job", nil)
	wantErr(t, err, redlatch.ErrConfig)
	wantText(t, err, server.URL(), `version "1"`, "redis-cli DEL redlatch:1:marker", "redlatch init")
	if errors.Is(err, redlatch.ErrChanging) {
		t.Errorf("%v says that it passes", err)
	}
	if now := server.Do("GET", "redlatch:1:marker"); now != former {
		t.Errorf("the marker is now %q", now)
	}
	server.Do("DEL", "redlatch:1:marker")
	eventually(t, patience, func() error { return cycle(c) })
}

func TestQuarantineIsNoLongerBecauseAClockWasSetBack(t *testing.T) {
	t.Parallel()
	for i, reason := range []string{"new", "membership"} {
		server := servertest.Redis(t, 1)[0]
		opts := quick
		opts.Guard = redlatch.GuardOn
		must(t, cycle(newClient(t, open(t, server.URL()), opts)))
		// The state after the clock was a day ahead when the server was marked.
		parts := strings.Fields(server.Do("GET", "redlatch:1:marker"))
		parts[9], parts[10] = fmt.Sprintf("%016d", time.Now().Add(24*time.Hour).UnixMicro()), reason
		server.Do("SET", "redlatch:1:marker", strings.Join(parts, " "))
		c := laterClient(t, opts, server.URL())
		_, err := c.TryLock(context.Background(), fmt.Sprint("job", i), nil)
		wantErr(t, err, redlatch.ErrQuarantine)
		eventually(t, patience, func() error { return cycle(c) })
	}
}

// TestClientThatTriesAgainIsNotBelievedUnsent has a go-redis client with its
// default retries lose a reply, and find no server when it retries.
func TestClientThatTriesAgainIsNotBelievedUnsent(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server.Addr())
			if err != nil {
				return
			}
			var lost atomic.Bool
			go pass(client, upstream, func(string) bool {
				// A reply that comes before the script was carried out is that of
				// an earlier request.
				if !lost.Load() || server.Do("GET", "job") != "v" {
					return true
				}
				client.Close()
				return false
			})
			go pass(upstream, client, func(text string) bool {
				if strings.Contains(strings.ToLower(text), "\r\neval\r\n") {
					// The script arrives, in however many pieces; the reply is
					// lost, and nothing listens there any longer.
					lost.Store(true)
					listener.Close()
				}
				return true
			})
		}
	}()
	client := goredisclient.NewClient(&goredisclient.Options{Addr: listener.Addr().String(), MaxRetries: 3})
	defer client.Close()
	n, err := goredis.From(client, &goredis.Options{Name: "theirs"})
	must(t, err)
	_, err = n.Do(context.Background(), node.Request{Op: node.OpAcquire, Name: "job", Value: "v", TTL: 10 * time.Second})
	if err == nil {
		t.Fatal("the reply was not lost")
	}
	eventually(t, patience, func() error {
		if server.Do("GET", "job") != "v" {
			return fmt.Errorf("the request was not carried out, and failed with: %v", err)
		}
		return nil
	})
	if errors.Is(err, node.ErrUnsent) {
		t.Errorf("it was carried out, and the node says: %v", err)
	}
}

// pass copies from one connection to the other while see returns true.
func pass(to, from net.Conn, see func(text string) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !see(string(buf[:n])) {
			return
		}
		to.Write(buf[:n])
	}
}
