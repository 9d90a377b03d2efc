//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// host is one that vanishes: it loses the end of a message, and everything after it,
// and the server's connections stay open.
type host struct {
	sent     atomic.Int64 // messages
	vanishes atomic.Int64 // in this one; 0 for never
	gone     atomic.Bool
}

// dial connects the host.
func (h *host) dial(t testing.TB) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if h.gone.Load() {
			return nil, errors.New("the host has vanished")
		}
		var d net.Dialer
		c, err := d.DialContext(ctx, network, address)
		if err == nil {
			t.Cleanup(func() { c.Close() })
		}
		return &vanishing{c, h}, err
	}
}

type vanishing struct {
	net.Conn
	*host
}

// syncBytes is the length of a Sync, the end of a message of the extended protocol.
const syncBytes = 5

func (c *vanishing) Write(message []byte) (int, error) {
	part := message
	if c.gone.Load() {
		part = nil
	} else if c.sent.Add(1) == c.vanishes.Load() {
		c.gone.Store(true)
		part = message[:len(message)-syncBytes]
	}
	_, err := c.Conn.Write(part)
	return len(message), err
}

func (c *vanishing) Close() error {
	if c.gone.Load() {
		return nil
	}
	return c.Conn.Close()
}

// TestRequestWithoutItsEndBlocksNobody has a host vanish when it has sent a write,
// except for its last bytes. Another one gets the lock.
func TestRequestWithoutItsEndBlocksNobody(t *testing.T) {
	dsn := servertest.PostgreSQL(t)
	b := openAt(t, dsn, "vanished")
	for name, c := range map[string]struct {
		changed bool  // another host has written the row
		after   int64 // it vanishes in this message
	}{
		"a write without a read":     {false, 1},
		"a write after one, refused": {true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var h host
			config, err := pgxpool.ParseConfig(dsn + "&pool_max_conns=1")
			must(t, err)
			config.ConnConfig.DialFunc = h.dial(t)
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			must(t, err)
			a, err := postgres.From(pool, &postgres.Options{Poll: true, Table: "vanished"})
			must(t, err)
			request := func(op node.Op, value string) node.Request {
				return node.Request{Op: op, Name: name, Value: value, TTL: time.Minute, Fencing: node.Fencing{Retention: time.Hour}}
			}
			use := func(n node.Node) {
				mustBe(t, n, request(node.OpAcquire, "before"), node.Granted)
				mustBe(t, n, request(node.OpRelease, "before"), node.Granted)
			}
			// It reads first for some time if the machine is slow.
			poll.Until(t, "each request is one message", func() bool {
				before := h.sent.Load()
				use(a)
				return h.sent.Load() == before+2
			})
			if c.changed {
				use(b)
			}
			h.vanishes.Store(h.sent.Load() + c.after)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if r, err := a.Do(ctx, request(node.OpAcquire, "vanished")); err == nil {
				t.Fatalf("the host that vanished: %v", r.Status)
			}
			if !h.gone.Load() {
				t.Fatal("the host has not vanished")
			}
			ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			begin := time.Now()
			r, err := b.Do(ctx, request(node.OpAcquire, "other"))
			if err != nil || r.Status != node.Granted {
				t.Errorf("another host, after %v: %v, %v", time.Since(begin).Round(time.Millisecond), r.Status, err)
			}
		})
	}
}
