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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

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
	servertest.PostgreSQL(t)
	stall.Retry(t, releaseMany)
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
		stall.Busy(t, limit/8, begin)
		t.Errorf("%d of %d releases failed, the first with: %v", len(failed), leases, failed[0])
	}
	if took := time.Since(begin); took < limit {
		t.Errorf("the releases took %v: none waited for longer than its limit", took)
	}
}

// TestLockIsNotGrantedInAnOpenTransaction has a given pool whose hooks begin a
// transaction, and a session in which one is open after a statement, as behind a
// pooler that hands on somebody else's.
func TestLockIsNotGrantedInAnOpenTransaction(t *testing.T) {
	own, err := postgres.Open(servertest.PostgreSQL(t), &postgres.Options{Poll: true, Table: "begun"})
	must(t, err)
	defer own.Close()
	req := wanted(node.OpAcquire, "one")
	req.Guard = nil
	inspect := req
	inspect.Op = node.OpInspect
	if _, err := own.Do(t.Context(), inspect); err != nil { // it creates the table
		t.Fatal(err)
	}
	begin := func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "BEGIN", pgx.QueryExecModeSimpleProtocol)
		return err
	}
	for name, hook := range map[string]func(*pgxpool.Config){
		"AfterConnect": func(c *pgxpool.Config) { c.AfterConnect = begin },
		"PrepareConn": func(c *pgxpool.Config) {
			c.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) { return true, begin(ctx, conn) }
		},
	} {
		config, err := pgxpool.ParseConfig(servertest.PostgreSQL(t))
		must(t, err)
		hook(config)
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		must(t, err)
		defer pool.Close()
		n, err := postgres.From(pool, &postgres.Options{Poll: true, Table: "begun"})
		must(t, err)
		if r, err := n.Do(t.Context(), req); !errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "a transaction is open") {
			t.Errorf("BEGIN in %s: %v, %v; want an error about the transaction", name, r.Status, err)
		}
		if err := postgres.Query(t.Context(), n, "SELECT 1"); !errors.Is(err, node.ErrUnsent) {
			t.Errorf("BEGIN in %s: %v; want nothing to be sent", name, err)
		}
	}
	if err := postgres.Query(t.Context(), own, "BEGIN"); err == nil || errors.Is(err, node.ErrUnsent) || !strings.Contains(err.Error(), "a transaction is open") {
		t.Errorf("a transaction is open after a statement: %v; want an error, and not that it was never sent", err)
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
