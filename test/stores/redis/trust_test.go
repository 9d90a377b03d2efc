//go:build unix

package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// TestQuarantineIsNoLongerBecauseAClockWasSetBack has the state after the clock was a
// day ahead when the server was marked.
func TestQuarantineIsNoLongerBecauseAClockWasSetBack(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	n := open(t, server.URL())[0]
	defer n.Close()
	guard := &node.Guard{Membership: "8fd65869eaf57c00", Nodes: "a", MaxTTL: 2 * time.Second, Window: time.Second, Quarantine: 3 * time.Second}
	do := func(req node.Request, want node.Status) {
		t.Helper()
		req.Guard = guard
		r, err := n.Do(t.Context(), req)
		if err != nil || r.Status != want || r.Left > guard.Quarantine {
			t.Errorf("%v is answered %+v, %v", req.Op, r, err)
		}
	}
	mark := func(what node.Mark, want node.Status) {
		t.Helper()
		if r, err := n.(node.Guarded).Mark(t.Context(), node.MarkRequest{Mark: what, Guard: guard}); err != nil || r.Status != want || r.Left > guard.Quarantine {
			t.Errorf("a mark is answered %+v, %v", r, err)
		}
	}
	for _, reason := range []string{"new", "membership"} {
		server.Do("DEL", "redlatch:1:marker")
		mark(node.MarkFresh, node.Granted)
		parts := strings.Fields(server.Do("GET", "redlatch:1:marker"))
		parts[9], parts[10] = fmt.Sprintf("%016d", time.Now().Add(24*time.Hour).UnixMicro()), reason
		server.Do("SET", "redlatch:1:marker", strings.Join(parts, " "))
		do(node.Request{Op: node.OpAcquire, Name: "job", Value: "v", TTL: time.Second}, node.Quarantined)
		mark(node.MarkWrite, node.Quarantined)
		do(node.Request{Op: node.OpAcquire, Name: "job", Value: "v", TTL: time.Second}, node.Quarantined)
	}
}

// TestClientThatTriesAgainIsNotBelievedUnsent has a go-redis client with its
// default retries lose a reply, and find no server when it retries.
func TestClientThatTriesAgainIsNotBelievedUnsent(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	proxy := servertest.NewProxy(t, server)
	client := goredisclient.NewClient(&goredisclient.Options{Addr: proxy.Addr(), MaxRetries: 3})
	defer client.Close()
	n, err := goredis.From(client, &goredis.Options{Name: "theirs"})
	must(t, err)
	do := func(name string) error {
		_, err := n.Do(context.Background(), node.Request{Op: node.OpAcquire, Name: name, Value: "v", TTL: 10 * time.Second})
		return err
	}
	must(t, do("first")) // the server knows the script now
	proxy.SwallowReplies(true)
	done := make(chan error, 1)
	go func() { done <- do("job") }()
	eventually(t, patience, func() error {
		if server.Do("GET", "job") != "v" {
			return errors.New("the request is not carried out")
		}
		return nil
	})
	proxy.Close()
	if err := <-done; err == nil || errors.Is(err, node.ErrUnsent) {
		t.Errorf("it was carried out, and the node says: %v", err)
	}
}
