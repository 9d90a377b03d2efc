// Package conns makes the connections of a driver, and gives up those that went
// silent: a firewall or a NAT that forgets a connection drops what is sent on
// it, and neither end is notified.
//
// A client library waits long for such a connection, or loses one request on
// each connection of a pool before it notices. Here one request without an
// answer is enough for all of them: after twice its time limit, every
// connection on which nothing has arrived since it began is closed, except those
// on which a request was just sent. The number of connections is limited here too:
// a library may lose some of them.
package conns

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// dialTimeout limits the time for making a connection.
const dialTimeout = 2 * time.Second

// KeepAlive lets the kernel detect an idle connection that went silent, and
// keeps firewalls and NATs between the two ends from forgetting it.
var KeepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: time.Second, Count: 3}

// A Group is the connections of a driver. The zero value is an empty one.
type Group struct {
	// Most is how many connections to one address stay open; 0 for any number. A
	// pool may drop a connection without closing it, and may make more than it
	// needs. So those that were not used for longest are closed, after restAfter
	// and if they have no request.
	Most int

	// mu guards what follows.
	mu      sync.Mutex
	open    map[*conn]bool
	waiting bool // a check is due
	trims   bool // so is another: there may be too many
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

// add adds a connection. It fails if the group is closed.
func (g *Group) add(c *conn) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return net.ErrClosed
	}
	if g.open == nil {
		g.open = map[*conn]bool{}
	}
	g.open[c] = true
	g.trimLater()
	return nil
}

// trimLater checks the number of connections later, if there are more than should
// stay. The caller holds mu.
func (g *Group) trimLater() {
	if g.Most > 0 && len(g.open) > g.Most && !g.trims {
		g.trims = true
		time.AfterFunc(restAfter, g.trim)
	}
}

// trim closes those of too many connections to an address that were not used for
// longest.
func (g *Group) trim() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trims = false
	byAddress := map[string][]*conn{}
	for c := range g.open {
		byAddress[c.address] = append(byAddress[c.address], c)
	}
	now := time.Since(began)
	more := false
	for _, all := range byAddress {
		slices.SortFunc(all, func(a, b *conn) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
		for _, c := range all[:max(len(all)-g.Most, 0)] {
			if c.used.Load() < int64(now-restAfter) && c.giveUp(int64(now-lostAfter)) {
				delete(g.open, c)
			} else {
				more = true
			}
		}
	}
	if more {
		g.trimLater()
	}
}

// Close closes all connections. Later ones cannot be made.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for c := range g.open {
		c.giveUp(math.MaxInt64)
	}
	clear(g.open)
}

// dial makes a connection. wrap is called with the socket.
func dial(ctx context.Context, network, address string, config *tls.Config, wrap func(net.Conn) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := net.Dialer{KeepAliveConfig: KeepAlive}
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
	reported := time.Since(began)
	time.AfterFunc(time.Since(start), func() { g.giveUpSilent(int64(start.Sub(began)), int64(reported)) })
}

// giveUpSilent closes the connections on which nothing has arrived since then. One
// that was idle, and on which a request was sent after the report, stays: its
// server has had less time to answer than its limit, and the connection of a busy
// server is not silent.
func (g *Group) giveUpSilent(then, reported int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = false
	for c := range g.open {
		if c.heard.Load() < then && c.giveUp(reported) {
			delete(g.open, c)
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

	// mu guards what follows.
	mu      sync.Mutex
	owed    bool  // something was sent after what last arrived
	asked   int64 // when it was, since began
	givenUp bool
}

const (
	// restAfter is how long a connection must be unused to make room for another:
	// a reply, or a batch of them, arrives in parts.
	restAfter = time.Second
	// lostAfter is how long a connection may have a request before it is taken
	// for one that a pool has dropped.
	lostAfter = 10 * time.Second
)

// giveUp closes the connection, unless somebody waits for an answer to what was
// sent since then. It reports whether it did.
func (c *conn) giveUp(since int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed && c.asked >= since {
		return false
	}
	c.givenUp = true
	c.Conn.Close()
	return true
}

// failed returns the error of a connection that was given up in place of its own.
func (c *conn) failed(err error) error {
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.givenUp:
		return err
	case c.owed:
		return ErrSilent
	}
	return ErrUnused
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		now := int64(time.Since(began))
		c.heard.Store(now)
		c.used.Store(now)
		c.mu.Lock()
		c.owed = false
		c.mu.Unlock()
	}
	if c.failed(err) != err {
		err = ErrSilent // a caller that reads has sent something
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	now := int64(time.Since(began))
	c.mu.Lock()
	if !c.owed && !c.givenUp {
		c.owed, c.asked = true, now
	}
	c.mu.Unlock()
	c.used.Store(now)
	n, err := c.Conn.Write(b)
	return n, c.failed(err)
}

// A pool sets a time limit before it sends. On a connection that was given up
// that fails, and nothing was sent.
func (c *conn) SetDeadline(t time.Time) error      { return c.failed(c.Conn.SetDeadline(t)) }
func (c *conn) SetReadDeadline(t time.Time) error  { return c.failed(c.Conn.SetReadDeadline(t)) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.failed(c.Conn.SetWriteDeadline(t)) }

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
