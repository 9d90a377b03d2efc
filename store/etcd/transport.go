package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/node"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// connect returns the client. The first call has it made: with a password, that asks
// the cluster, and does not end with the context.
func (s *store) connect(ctx context.Context) (*clientv3.Client, error) {
	s.mu.Lock()
	client, closed, dialled := s.client, s.closed, s.dialled
	if client == nil && !closed && dialled == nil {
		dialled = make(chan struct{})
		s.dialled = dialled
		go s.dial(dialled)
	}
	s.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case client != nil:
		return client, nil
	}
	select {
	case <-ctx.Done():
		return nil, s.lines.why(time.Time{}, ctx.Err())
	case <-dialled:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		return nil, fmt.Errorf("%w (%w)", s.failed, node.ErrUnsent)
	}
	return s.client, nil
}

// dial makes the client. If that fails, the next call tries again.
func (s *store) dial(dialled chan struct{}) {
	client, err := clientv3.New(*s.config)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(dialled)
	if s.dialled = nil; err == nil && s.closed {
		client.Close()
		err = errClosed
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.lines.why(time.Time{}, err)
	}
	if s.failed = explain(err); err == nil {
		s.client = client
	}
}

// Close closes the client, if it is the node's own.
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	closed := s.closed
	if s.closed = true; closed || s.client == nil || s.config == nil {
		return nil
	}
	if err := s.client.Close(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// txn executes a transaction.
func (s *store) txn(ctx context.Context, compare []clientv3.Cmp, ops ...clientv3.Op) (*clientv3.TxnResponse, error) {
	return s.either(ctx, compare, ops, nil)
}

// either executes a transaction that does something else if a comparison fails.
func (s *store) either(ctx context.Context, compare []clientv3.Cmp, ops, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	client, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r, err := client.Txn(ctx).If(compare...).Then(ops...).Else(otherwise...).Commit()
	if err != nil && ctx.Err() != nil {
		err = s.lines.why(began, err)
	}
	return r, explain(err)
}

// transport is the connections of a client to the members. gRPC gives up a connection to
// a member that is stopped after 13 s at the earliest, and sends it every third request
// until then. So one that is silent for as long as a request waits is closed: no other
// request goes there before the member answers again.
type transport struct {
	credentials.TransportCredentials
	name  string // that the certificate must have; empty for that of the address
	lines *lines
}

type lines struct {
	mu     sync.Mutex
	open   map[string]*line // by the local address
	cause  error            // why a member could not be reached
	caused time.Time
	secure bool
	asked  atomic.Bool // a member wants a certificate, and there is none
}

// leastSilence is how long a connection must be silent at least to be closed.
const leastSilence = 50 * time.Millisecond

// newLines has a client use connections that it can close.
func newLines(config *clientv3.Config, secure *tls.Config) *lines {
	l := &lines{open: map[string]*line{}, secure: secure != nil}
	t := &transport{insecure.NewCredentials(), "", l}
	if secure != nil {
		if len(secure.Certificates) == 0 {
			secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				l.asked.Store(true)
				return new(tls.Certificate), nil
			}
		}
		t.TransportCredentials, t.name = credentials.NewTLS(secure), secure.ServerName
	}
	config.DialOptions = append(config.DialOptions, grpc.WithTransportCredentials(t), grpc.WithChainUnaryInterceptor(l.intercept))
	return l
}

// ClientHandshake sets the name that is expected: gRPC's own overwrites it.
func (t *transport) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if t.name != "" {
		authority = t.name
	}
	return t.TransportCredentials.ClientHandshake(ctx, authority, t.lines.add(raw))
}

func (t *transport) Clone() credentials.TransportCredentials {
	return &transport{t.TransportCredentials.Clone(), t.name, t.lines}
}

// intercept is called for each try of a request.
func (l *lines) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	var at peer.Peer
	sent := time.Now()
	err := invoke(ctx, method, req, reply, cc, append(opts[:len(opts):len(opts)], grpc.Peer(&at))...)
	switch _, cause, found := strings.Cut(status.Convert(err).Message(), "latest balancer error: "); {
	case status.Code(err) != codes.DeadlineExceeded:
	case found: // no member could be reached, and gRPC says why
		l.mu.Lock()
		l.cause, l.caused = errors.New(cause), time.Now()
		l.mu.Unlock()
	case at.LocalAddr != nil:
		l.cut(at.LocalAddr.String(), sent)
	}
	return err
}

// why returns why no member could be reached since then, in place of the end of a
// context.
func (l *lines) why(since time.Time, ended error) error {
	if l == nil {
		return ended
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause == nil || l.caused.Before(since) {
		return ended
	}
	switch text := l.cause.Error(); {
	case strings.Contains(text, "while dialing"):
	case l.asked.Load():
		return fmt.Errorf("the member asks for a certificate: name it in tls_cert and tls_key (%w)", l.cause)
	case !l.secure:
		return fmt.Errorf("the member may expect TLS: use etcds:// (%w)", l.cause)
	}
	return l.cause
}

// cut closes a connection that was silent since then.
func (l *lines) cut(local string, since time.Time) {
	l.mu.Lock()
	c := l.open[local]
	silent := c != nil && c.heard.Before(since) && time.Since(since) >= leastSilence
	l.mu.Unlock()
	if silent {
		c.Close()
	}
}

func (l *lines) add(raw net.Conn) net.Conn {
	c := &line{Conn: raw, lines: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[raw.LocalAddr().String()] = c
	return c
}

// line is one connection.
type line struct {
	net.Conn
	lines *lines
	heard time.Time // when something arrived last
}

func (c *line) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.lines.mu.Lock()
		c.heard = time.Now()
		c.lines.mu.Unlock()
	}
	return n, err
}

func (c *line) Close() error {
	c.lines.mu.Lock()
	if local := c.LocalAddr().String(); c.lines.open[local] == c {
		delete(c.lines.open, local)
	}
	c.lines.mu.Unlock()
	return c.Conn.Close()
}
