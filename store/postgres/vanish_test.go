//go:build unix

package postgres_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

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
		if requests && v.armed {
			if v.after--; v.after < 0 {
				v.gone = true
				n -= syncBytes
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

func (v *vanishing) vanished() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gone
}

// TestRequestWithoutItsEndBlocksNobody has a host vanish when it has sent a write,
// except for its last bytes. Another one gets the lock.
func TestRequestWithoutItsEndBlocksNobody(t *testing.T) {
	server := servertest.OwnPostgreSQL(t)
	way := newVanishing(t, server.Addr())
	pool, err := pgxpool.New(t.Context(), server.Through(way.listener.Addr().String())+"&pool_max_conns=1")
	must(t, err)
	a, err := postgres.From(pool, &postgres.Options{Poll: true})
	must(t, err)
	for range 3 { // it has all that it needs
		req := node.Request{Op: node.OpAcquire, Name: "job", Value: "before", TTL: time.Minute, Retention: time.Hour}
		mustBe(t, a, req, node.Granted)
		req.Op = node.OpRelease
		mustBe(t, a, req, node.Granted)
	}
	way.vanish(1) // the read passes
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if r, err := a.Do(ctx, node.Request{Op: node.OpAcquire, Name: "job", Value: "vanished", TTL: time.Minute, Retention: time.Hour}); err == nil {
		t.Fatalf("the host that vanished: %v", r.Status)
	}
	if !way.vanished() {
		t.Fatal("the host has not vanished")
	}
	b, err := postgres.Open(server.DSN(), &postgres.Options{Poll: true})
	must(t, err)
	defer b.Close()
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	begin := time.Now()
	r, err := b.Do(ctx, node.Request{Op: node.OpAcquire, Name: "job", Value: "other", TTL: time.Minute, Retention: time.Hour})
	if err != nil || r.Status != node.Granted {
		t.Errorf("another host, after %v: %v, %v", time.Since(begin).Round(time.Millisecond), r.Status, err)
	}
}
