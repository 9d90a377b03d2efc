//go:build unix

package redis_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	goredisclient "github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/certs"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/observe"
	"github.com/redlatch/redlatch/store/redis/goredis"
)

// busy has many callers use a client at once, so that it has as many
// connections, in the same state, as in a busy program.
func busy(c *redlatch.Client) {
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for range 5 {
				// The outcome does not matter, nor would it on a machine that
				// has other work to do.
				if l, err := c.TryLock(context.Background(), fmt.Sprint("busy ", i), nil); err == nil {
					l.Release(context.Background())
				}
			}
		})
	}
	all.Wait()
}

// TestSilentConnectionsAreGivenUpBeforeTheLeaseIsLost has a firewall forget
// every connection: data sent on them is lost without an error, and new
// connections work.
func TestSilentConnectionsAreGivenUpBeforeTheLeaseIsLost(t *testing.T) {
	t.Parallel()
	ca := certs.New(t)
	ca.Sign("good", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	for _, secure := range []bool{false, true} {
		eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
			t.Parallel()
			timed(t, func(t testing.TB) {
				server, proxy, url := silentProxy(t, ca, secure)
				t.Logf("TLS %v", secure)
				outlivesSilence(t, server, proxy, nodes(url))
			})
		})
	}
}

// TestSilentConnectionsOfTheProgramsOwnClientAreDropped is the same with a client
// that the program made, with the library's default options.
func TestSilentConnectionsOfTheProgramsOwnClientAreDropped(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		server := servertest.Redis(t, 1)[0]
		proxy := servertest.NewProxy(t, server)
		theirs := goredisclient.NewClient(&goredisclient.Options{Addr: proxy.Addr(), PoolSize: 32})
		t.Cleanup(func() { theirs.Close() })
		n, err := goredis.From(theirs, &goredis.Options{Name: "theirs"})
		must(t, err)
		outlivesSilence(t, server, proxy, []redlatch.Node{n})
	})
}

// outlivesSilence checks that a busy client, whose connections the proxy forgets,
// is soon granted locks again and keeps its lease.
func outlivesSilence(t testing.TB, server *servertest.Server, proxy *servertest.Proxy, nodes []redlatch.Node) {
	t.Helper()
	const ttl = 6 * time.Second
	c := newClient(t, nodes, redlatch.Options{NodeTimeout: 250 * time.Millisecond})
	busy(c)
	l := mustLock(t, c, "kept", redlatch.LockOptions{TTL: ttl})
	proxy.Forget()
	start := time.Now()
	eventually(t, patience, func() error {
		other, err := c.TryLock(context.Background(), "another", nil)
		if err == nil {
			other.Release(context.Background())
		}
		return err
	})
	took := time.Since(start)
	t.Logf("a lock is granted after %v", took)
	if over(t, took, ttl/3, start) {
		t.Errorf("no lock was granted for %v, want a third of the TTL of %v at the most", took, ttl)
	}
	for time.Since(start) < ttl+ttl/3 { // it is kept beyond its first deadline
		asked := time.Now()
		server.Do("PING")
		stall.In(t, time.Second, asked) // a server that is stopped for long extends nothing
		if l.Err() != nil {
			stall.Busy(t, starved, start)
			t.Fatalf("the lease was lost %v after the connections went silent: %v", time.Since(start), context.Cause(l.Context()))
		}
		time.Sleep(starved)
	}
	l.Release(context.Background())
}

// silentProxy returns a new server, and a proxy to it with its address.
func silentProxy(t testing.TB, ca *certs.Authority, secure bool) (*servertest.Server, *servertest.Proxy, string) {
	t.Helper()
	if !secure {
		server := servertest.Redis(t, 1)[0]
		p := servertest.NewProxy(t, server)
		return server, p, p.URL()
	}
	port := servertest.FreePort(t)
	server := servertest.Redis(t, 1, "--tls-port", port, "--tls-cert-file", ca.File("good"), "--tls-key-file", ca.File("good-key"),
		"--tls-ca-cert-file", ca.File("ca"), "--tls-auth-clients", "no")[0]
	p, err := servertest.OpenProxy("127.0.0.1:" + port)
	must(t, err)
	t.Cleanup(p.Close)
	return server, p, "rediss://" + p.Addr() + "?tls_ca=" + ca.File("ca")
}

// TestSilentInboxIsMadeAnew waits for a lock while the connection for the
// notification goes silent; then another client releases the lock.
func TestSilentInboxIsMadeAnew(t *testing.T) {
	t.Parallel()
	eachDriverTimed(t, func(t testing.TB, nodes func(...string) []redlatch.Node) {
		server := servertest.Redis(t, 1)[0]
		proxy := servertest.NewProxy(t, server)
		holder := newClient(t, nodes(server.URL()), redlatch.Options{})
		lease := mustLock(t, holder, "job", redlatch.LockOptions{TTL: 30 * time.Second})
		waiter := newClient(t, nodes(proxy.URL()), redlatch.Options{NodeTimeout: 250 * time.Millisecond})
		began, waiting := time.Now(), goLock(waiter, "job", redlatch.LockOptions{})
		listening := func(n int) func() error {
			return func() error {
				if list := server.Do("CLIENT", "LIST", "TYPE", "pubsub"); strings.Count(list, "sub=1") != n {
					return fmt.Errorf("want %d that listen: %s", n, list)
				}
				return nil
			}
		}
		eventually(t, patience, listening(1))
		eventually(t, patience, func() error {
			select {
			case g := <-waiting: // a time limit of the node was over
				stall.Busy(t, starved, began)
				t.Fatal(g.err)
			default:
			}
			return inLine([]*servertest.Server{server}, "job", 1)()
		})
		start := time.Now()
		proxy.Forget()
		// The server still has the connection that went silent.
		eventually(t, patience, listening(2))
		if took := time.Since(start); over(t, took, 3*time.Second, start) {
			t.Errorf("the inbox was made anew after %v", took)
		}
		start = time.Now()
		mustRelease(t, lease)
		next := mustGet(t, waiting, patience)
		if took := time.Since(start); over(t, took, 2*time.Second, start) {
			t.Errorf("the lock was handed on within %v", took)
		}
		mustRelease(t, next)
	})
}

// TestReplyThatNeverComesIsATimeoutThroughEveryDriver sends a request to a
// stopped server. The connection is not broken, so nothing is retried at once.
func TestReplyThatNeverComesIsATimeoutThroughEveryDriver(t *testing.T) {
	t.Parallel()
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		server := servertest.Redis(t, 1)[0]
		var asked []observe.RoundEnd
		c := newClient(t, nodes(server.URL()), redlatch.Options{NodeTimeout: 500 * time.Millisecond,
			Observer: roundsOf{f: func(r observe.RoundEnd) { asked = append(asked, r) }}})
		mustRelease(t, mustLock(t, c, "job", redlatch.LockOptions{}))
		server.Freeze()
		defer server.Thaw()
		for try := range 3 {
			asked = nil
			_, err := c.Lock(context.Background(), "job", &redlatch.LockOptions{Wait: redlatch.NoWait})
			wantErr(t, err, redlatch.ErrNoQuorum, redlatch.ErrNodeTimeout)
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v is taken for the end of the caller's context", err)
			}
			if len(asked) != 1 {
				t.Errorf("try %d: with NoWait, %d rounds were asked", try, len(asked))
			}
		}
	})
}

// roundsOf is an observer that calls a function with each round.
type roundsOf struct {
	announcerless
	f func(observe.RoundEnd)
}

func (r roundsOf) RoundEnd(_ context.Context, end observe.RoundEnd) { r.f(end) }
