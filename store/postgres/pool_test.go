//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// slowPool returns a node with five connections to a server that is far away.
func slowPool(t testing.TB, table string, delay time.Duration) (*postgres.Node, *servertest.Proxy) {
	t.Helper()
	server := servertest.OwnPostgreSQL(t)
	proxy := servertest.NewProxy(t, server)
	n, err := postgres.Open(server.Through(proxy.Addr())+"&pool_max_conns=5", &postgres.Options{Poll: true, Table: table})
	must(t, err)
	t.Cleanup(func() { n.Close() })
	proxy.Delay(delay)
	return n, proxy
}

// TestManyLeasesAreReleasedAtOnceOverAFewConnections has releases wait for a
// connection for longer than the node time limit. One that has a connection takes
// an eighth of the limit, so that a busy machine has time for it. The same is
// tested in virtual time in package casnode.
func TestManyLeasesAreReleasedAtOnceOverAFewConnections(t *testing.T) {
	servertest.PostgreSQL(t) // it may skip, which a test that is run again may not
	stall.Retry(t, time.Second, releaseMany)
}

func releaseMany(t testing.TB) {
	const leases, limit = 50, 4 * time.Second
	n, proxy := slowPool(t, "released", 0)
	c, err := redlatch.New([]redlatch.Node{n}, &redlatch.Options{AssumeFresh: true, NodeTimeout: limit, Cluster: redlatch.Cluster{MaxTTL: 5 * time.Minute}})
	must(t, err)
	defer c.Close()
	var all []*redlatch.Lease
	for i := range leases {
		l, err := c.Lock(t.Context(), fmt.Sprint("job ", i), &redlatch.LockOptions{TTL: 5 * time.Minute, NoKeepAlive: true})
		must(t, err)
		all = append(all, l)
	}
	proxy.Delay(limit / 16) // 50 releases of two statements over five connections take 5 s
	begin := time.Now()
	var mu sync.Mutex // guards failed
	var failed []error
	var wg sync.WaitGroup
	for _, l := range all {
		wg.Go(func() {
			if err := l.Release(context.Background()); err != nil {
				mu.Lock()
				failed = append(failed, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(failed) > 0 {
		t.Errorf("%d of %d releases failed, the first with: %v", len(failed), leases, failed[0])
	}
	if took := time.Since(begin); took < limit {
		t.Errorf("the releases took %v: none waited for longer than its limit", took)
	}
}

// TestRequestWithoutAConnectionSaysSo has all connections in use: the error says
// that, and is no sign that the node is silent.
func TestRequestWithoutAConnectionSaysSo(t *testing.T) {
	n, proxy := slowPool(t, "crowded", 0)
	if _, err := n.Do(t.Context(), wanted(node.OpInspect, "")); err != nil {
		t.Fatal(err)
	}
	proxy.Delay(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 5 {
		go n.Do(ctx, wanted(node.OpInspect, ""))
	}
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err = n.Do(short, wanted(node.OpAcquire, "one"))
		cancel()
		if errors.Is(err, node.ErrBusy) {
			break
		}
	}
	if !errors.Is(err, node.ErrBusy) || !errors.Is(err, node.ErrUnsent) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "all 5") {
		t.Errorf("without a connection: %v", err)
	}
}

// TestCloseDoesNotWaitForASilentServer closes a client whose server does not
// answer. Its leases have a node time limit of one second.
func TestCloseDoesNotWaitForASilentServer(t *testing.T) {
	n, proxy := slowPool(t, "silent", 0)
	c, err := redlatch.New([]redlatch.Node{n}, &redlatch.Options{AssumeFresh: true})
	must(t, err)
	defer c.Close()
	if _, err := c.Lock(t.Context(), "job", nil); err != nil {
		t.Fatal(err)
	}
	proxy.LoseRequests(true)
	begin := time.Now()
	c.Close()
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("Close took %v: it takes two node time limits and a tenth of a second", took)
	}
}
