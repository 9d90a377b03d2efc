// Package conns makes the connections of a driver, and gives up those that went
// silent: a firewall or a NAT that forgets a connection drops what is sent on
// it, and neither end is notified.
//
// A client library waits long for such a connection, or loses one request on
// each connection of a pool before it notices. Here one request without an
// answer is enough for all of them: after twice its time limit, every
// connection on which nothing has arrived since it began is closed. The number
// of connections is limited here too: a library may lose some of them.
package conns

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// dialTimeout limits the time for making a connection.
const dialTimeout = 2 * time.Second

// keepAlive has the kernel detect an idle connection that went silent, and
// keeps firewalls and NATs between the two ends from forgetting it.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second, Count: 3}

// A Group is the connections of a driver. The zero value is an empty one.
type Group struct {
	// Most is how many connections to one address are open at a time; 0 for any
	// number. A pool may drop a connection without closing it. So the one that
	// was not used for longest makes room for a new one.
	Most int

	// mu guards what follows.
	mu      sync.Mutex
	open    map[*conn]bool
	waiting bool // a check is due
	closed  bool
}

// Dial makes a connection of the group, with TLS if config is not nil.
func (g *Group) Dial(ctx context.Context, network, address string, config *tls.Config) (net.Conn, error) {
	return dial(ctx, network, address, config, func(raw net.Conn) (net.Conn, error) {
		c := &conn{Conn: raw, group: g, address: address}
		c.heard.Store(int64(time.Since(began)))
		c.used.Store(int64(time.Since(began)))
		return c, g.add(c)
	})
}

// add adds a connection, and closes another one if there are too many. It fails
// if the group is closed.
func (g *Group) add(c *conn) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return net.ErrClosed
	}
	if g.open == nil {
		g.open = map[*conn]bool{}
	}
	var oldest *conn
	n := 0
	for o := range g.open {
		if o.address == c.address {
			n++
			if oldest == nil || o.used.Load() < oldest.used.Load() {
				oldest = o
			}
		}
	}
	if g.Most > 0 && n >= g.Most {
		g.giveUp(oldest)
	}
	g.open[c] = true
	return nil
}

// giveUp closes a connection. The caller holds mu.
func (g *Group) giveUp(c *conn) {
	delete(g.open, c)
	c.givenUp.Store(true)
	c.Conn.Close()
}

// Close closes all connections. Later ones cannot be made.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for c := range g.open {
		g.giveUp(c)
	}
}

// dial makes a connection. wrap is called with the socket.
func dial(ctx context.Context, network, address string, config *tls.Config, wrap func(net.Conn) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := net.Dialer{KeepAliveConfig: keepAlive}
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c, err := wrap(raw)
	if err != nil {
		raw.Close()
		return nil, err
	}
	if config == nil {
		return c, nil
	}
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	secure := tls.Client(c, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return secure, nil
}

// Returned reports how a request ended that began at start. If it had no answer
// by the deadline of ctx, the connections on which nothing has arrived since
// start are closed after the same time again. The second half is for a process
// that was stalled, and has yet to read what arrived.
func (g *Group) Returned(ctx context.Context, start time.Time, err error) {
	if err == nil {
		return
	}
	// A library that sets the deadline on the connection may return before the
	// context has ended.
	if deadline, ok := ctx.Deadline(); !ok || time.Now().Before(deadline) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting {
		return // if all stays silent, the next request reports it
	}
	g.waiting = true
	time.AfterFunc(time.Since(start), func() { g.giveUpSilent(int64(start.Sub(began))) })
}

// giveUpSilent closes the connections on which nothing has arrived since then.
func (g *Group) giveUpSilent(then int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = false
	for c := range g.open {
		if c.heard.Load() < then {
			g.giveUp(c)
		}
	}
}

// began is what times are counted from.
var began = time.Now()

// conn is a connection that knows when something last arrived on it.
type conn struct {
	net.Conn
	group   *Group
	address string
	heard   atomic.Int64 // when something last arrived, since began
	used    atomic.Int64 // when something last arrived or was sent, since began
	owed    atomic.Bool  // something was sent after that
	givenUp atomic.Bool
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		now := int64(time.Since(began))
		c.heard.Store(now)
		c.used.Store(now)
		c.owed.Store(false)
	}
	if err != nil && c.givenUp.Load() {
		err = ErrSilent
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	if c.givenUp.Load() && !c.owed.Load() {
		return 0, ErrUnused
	}
	c.owed.Store(true)
	c.used.Store(int64(time.Since(began)))
	n, err := c.Conn.Write(b)
	if err != nil && c.givenUp.Load() {
		err = ErrSilent
	}
	return n, err
}

func (c *conn) Close() error {
	c.group.mu.Lock()
	delete(c.group.open, c)
	c.group.mu.Unlock()
	return c.Conn.Close()
}

// SyscallConn lets a pool look at an idle connection.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

var (
	// ErrSilent is returned for a request that had no answer on a connection
	// which was closed because it was silent. It is a timeout.
	ErrSilent error = silent{}
	// ErrUnused is returned for a request on a connection that was closed while
	// it was idle: nothing of the request was sent.
	ErrUnused = errors.New("an idle connection was given up")
)

type silent struct{}

func (silent) Error() string   { return "a connection that went silent was given up" }
func (silent) Timeout() bool   { return true }
func (silent) Temporary() bool { return false }
