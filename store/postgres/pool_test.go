//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// smallPool returns a node with five connections to a server behind a proxy.
func smallPool(t testing.TB) (*postgres.Node, *servertest.Proxy) {
	t.Helper()
	server := servertest.OwnPostgreSQL(t)
	proxy := servertest.NewProxy(t, server)
	return openAt(t, server.Through(proxy.Addr())+"&pool_max_conns=5", ""), proxy
}

// TestLockIsNotGrantedInAnOpenTransaction has a given pool whose hooks begin a
// transaction, and a session in which one is open after a statement, as behind a
// pooler that hands on somebody else's.
func TestLockIsNotGrantedInAnOpenTransaction(t *testing.T) {
	own := openAt(t, servertest.PostgreSQL(t), "begun")
	req := wanted(node.OpAcquire, "one")
	req.Guard = nil
	mustBe(t, own, wanted(node.OpInspect, ""), node.Absent) // it creates the table
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
	n, proxy := smallPool(t)
	mustBe(t, n, wanted(node.OpInspect, ""), node.Absent)
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

// TestCloseDoesNotWaitForASilentServer has a request in vain. The pool alone would
// wait for up to 15 s.
func TestCloseDoesNotWaitForASilentServer(t *testing.T) {
	n, proxy := smallPool(t)
	mustBe(t, n, wanted(node.OpInspect, ""), node.Absent)
	proxy.LoseRequests(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if r, err := n.Do(ctx, wanted(node.OpInspect, "")); err == nil {
		t.Fatalf("a silent server answers %v", r.Status)
	}
	begin := time.Now()
	n.Close()
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("Close took %v", took)
	}
}
