//go:build unix

package postgres_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/postgres"
)

// vanishing is a way to a server on which a host vanishes: it loses the end of a
// message, and everything after it, and the server's connection stays open.
type vanishing struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	sent  int // messages of the host
	armed bool
	after int // so many messages still pass
	gone  bool
	conns []net.Conn
}

func newVanishing(t *testing.T, to string) *vanishing {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	v := &vanishing{listener: l, to: to}
	t.Cleanup(func() {
		l.Close()
		v.mu.Lock()
		defer v.mu.Unlock()
		for _, c := range v.conns {
			c.Close()
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			v.connect(c)
		}
	}()
	return v
}

func (v *vanishing) connect(client net.Conn) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.conns = append(v.conns, client)
	if v.gone {
		return
	}
	server, err := net.Dial("tcp", v.to)
	if err != nil {
		client.Close()
		return
	}
	v.conns = append(v.conns, server)
	go v.copy(server, client, true)
	go v.copy(client, server, false)
}

// syncBytes is the length of a Sync, the end of a message of the extended protocol.
const syncBytes = 5

func (v *vanishing) copy(to, from net.Conn, requests bool) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		v.mu.Lock()
		if v.gone || err != nil && v.armed {
			v.mu.Unlock()
			return
		}
		if requests {
			v.sent++
			if v.armed {
				if v.after--; v.after < 0 {
					v.gone = true
					n -= syncBytes
				}
			}
		}
		v.mu.Unlock()
		if n > 0 {
			to.Write(buffer[:n])
		}
		if err != nil {
			to.Close()
			return
		}
	}
}

// vanish has the host vanish in the middle of the message after so many.
func (v *vanishing) vanish(after int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.armed, v.after = true, after
}

func (v *vanishing) messages() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.sent
}

func (v *vanishing) vanished() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gone
}

// TestRequestWithoutItsEndBlocksNobody has a host vanish when it has sent a write,
// except for its last bytes. Another one gets the lock.
func TestRequestWithoutItsEndBlocksNobody(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	b, err := postgres.Open(server.DSN(), &postgres.Options{Poll: true})
	must(t, err)
	defer b.Close()
	for name, c := range map[string]struct {
		changed bool // another host has written the row
		after   int  // so many messages pass
	}{
		"a write without a read":     {false, 0},
		"a write after one, refused": {true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			way := newVanishing(t, server.Addr())
			pool, err := pgxpool.New(t.Context(), server.Through(way.listener.Addr().String())+"&pool_max_conns=1")
			must(t, err)
			a, err := postgres.From(pool, &postgres.Options{Poll: true})
			must(t, err)
			request := func(op node.Op, value string) node.Request {
				return node.Request{Op: op, Name: name, Value: value, TTL: time.Minute, Retention: time.Hour}
			}
			use := func(n node.Node) {
				mustBe(t, n, request(node.OpAcquire, "before"), node.Granted)
				mustBe(t, n, request(node.OpRelease, "before"), node.Granted)
			}
			// It reads first for some time if the machine is slow.
			poll.Until(t, "each request is one message", func() bool {
				before := way.messages()
				use(a)
				return way.messages() == before+2
			})
			if c.changed {
				use(b)
			}
			way.vanish(c.after)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if r, err := a.Do(ctx, request(node.OpAcquire, "vanished")); err == nil {
				t.Fatalf("the host that vanished: %v", r.Status)
			}
			if !way.vanished() {
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
