package zookeeper

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redlatch/redlatch/node"
)

// link is the connection of a store, and the session that it has. The client opens
// both again by itself.
type link struct {
	servers []string // none for a connection of the program
	opts    Options

	mu     sync.Mutex // guards the fields below
	conn   *zk.Conn   // nil until it is first used
	own    bool       // close it
	closed bool
	failed error // why the last try to connect came to nothing

	answered atomic.Int64 // when the server last answered, in Unix nanoseconds; pings do not count

	authenticating sync.Mutex // guards authenticated
	authenticated  bool
}

// session returns the connection when it has a session, authenticated. Until then
// nothing is handed to the client, which would send it much later.
func (l *link) session(ctx context.Context) (*zk.Conn, error) {
	conn, err := l.connect()
	if err != nil {
		return nil, err
	}
	for conn.State() != zk.StateHasSession {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%w)", l.unreachable(ctx.Err()), node.ErrUnsent)
		case <-time.After(5 * time.Millisecond): // a connection of the program has no event for us
		}
		if l.isClosed() {
			return nil, errClosed
		}
	}
	if l.opts.User == "" {
		return conn, nil
	}
	_, err = within(ctx, func() (struct{}, error) {
		l.authenticating.Lock()
		defer l.authenticating.Unlock()
		if l.authenticated {
			return struct{}{}, nil
		}
		err := conn.AddAuth("digest", []byte(l.opts.digest()))
		l.authenticated = err == nil // the client does it again when it reconnects
		return struct{}{}, err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot authenticate: %w (%w)", err, node.ErrUnsent)
	}
	return conn, nil
}

func (l *link) connect() (*zk.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	if l.conn != nil {
		return l.conn, nil
	}
	conn, _, err := zk.Connect(l.servers, l.opts.Session, zk.WithDialer(l.dialNoting), zk.WithHostProvider(new(hosts)),
		zk.WithLogger(silent{}), zk.WithLogInfo(false), zk.WithMaxConnBufferSize(l.opts.MaxBuffer+4096))
	l.conn, l.own = conn, true
	return conn, err
}

func (l *link) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *link) close() error {
	l.mu.Lock()
	conn := l.conn
	if !l.own || l.closed {
		conn = nil
	}
	l.closed = true
	l.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	return nil
}

// dial connects to a server, with TLS if it is set.
func (l *link) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if l.opts.TLS == nil {
		return net.DialTimeout(network, address, timeout)
	}
	return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, l.opts.TLS)
}

// dialNoting is dial, and notes why no session comes of it.
func (l *link) dialNoting(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := l.dial(network, address, timeout)
	if err != nil {
		l.note(err)
		return nil, err
	}
	return &handshake{Conn: c, answered: &l.answered, done: func(err error) {
		switch {
		case errors.Is(err, io.EOF):
			err = fmt.Errorf("%s %w", address, ErrNotServing)
		case err != nil:
			err = fmt.Errorf("%s: %w", address, err)
		}
		l.note(err)
	}}, nil
}

func (l *link) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = err
}

// unreachable says why there is no session.
func (l *link) unreachable(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return fmt.Errorf("%w: %w", ErrNoSession, l.failed)
	}
	return fmt.Errorf("%w: %w", ErrNoSession, err)
}

// handshake is a connection that notes how the first answer comes: its error, or nil. It
// notes when the last one came, too.
// A server without a quorum, or one that has not seen yet what the session has seen,
// closes the connection instead.
type handshake struct {
	net.Conn
	over     bool
	done     func(error)
	answered *atomic.Int64
}

func (h *handshake) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if !h.over && n > 0 {
		h.done(nil)
	} else if !h.over && err != nil {
		h.done(err)
	}
	h.over = h.over || n > 0 || err != nil
	if ping := n < 16 || int32(binary.BigEndian.Uint32(b)) == pingXid; !ping {
		h.answered.Store(time.Now().UnixNano())
	}
	return n, err
}

// busy adds to the error of a request that was late whether the server answered parts of
// it: then it has too much to do, and that is no outage. A server that lost its leader
// answers what it knows by itself, at once, and then nothing.
func (l *link) busy(began time.Time, err error) error {
	late := time.Since(began)
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(err, node.ErrUnsent) && l.answered.Load() > began.Add(late/4).UnixNano() {
		return fmt.Errorf("%w: %w", node.ErrContended, err)
	}
	return err
}

// hosts is the list of servers. A name is resolved when it is connected to, since the
// servers behind it may be others later. The client asks from one goroutine.
type hosts struct {
	servers   []string
	at, since int // since when none was connected to
}

func (h *hosts) Init(servers []string) error {
	h.servers, h.at, h.since = servers, -1, 0
	return nil
}

func (h *hosts) Len() int { return len(h.servers) }

func (h *hosts) Next() (server string, all bool) {
	h.at = (h.at + 1) % len(h.servers)
	h.since++
	if h.since > len(h.servers) {
		h.since, all = 1, true
	}
	return h.servers[h.at], all
}

func (h *hosts) Connected() { h.since = 0 }

type silent struct{}

func (silent) Printf(string, ...any) {}

// within calls f, which cannot be cancelled, and returns when the context ends. f goes
// on then.
func within[T any](ctx context.Context, f func() (T, error)) (none T, err error) {
	type answer struct {
		value T
		err   error
	}
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	answers := make(chan answer, 1)
	go func() {
		value, err := f()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// inSession calls f, and again if that was not all in one session: the next one may be
// on a server that lags behind what the first has seen.
func inSession[T any](ctx context.Context, l *link, f func(conn *zk.Conn) (T, error)) (none T, err error) {
	for {
		conn, err := l.session(ctx)
		if err != nil {
			return none, err
		}
		value, err := within(ctx, func() (T, error) {
			session := conn.SessionID()
			value, err := f(conn)
			if err == nil && (session == 0 || conn.SessionID() != session) {
				err = errMoved
			}
			return value, err
		})
		if !again(err) || ctx.Err() != nil {
			return value, err
		}
	}
}

// all calls functions at once, and returns the first of their errors.
func all(fs ...func() error) error {
	errs := make([]error, len(fs))
	var ended sync.WaitGroup
	for i, f := range fs {
		ended.Go(func() { errs[i] = f() })
	}
	ended.Wait()
	return cmp.Or(errs...)
}
