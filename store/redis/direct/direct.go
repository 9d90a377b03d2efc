// Package direct makes redlatch nodes of Redis servers reached over sockets of
// its own, without a client library. It is the driver to choose unless a program
// already has a client: it brings no dependency, and it is the fastest.
//
// Each node has one connection. Requests of many goroutines share it in one
// pipeline: those that wait for it together are sent as one call. A request in
// flight needs no goroutine, and notifications arrive on the same connection. That
// takes RESP3, which servers have from Redis 6 on.
//
// Replies are read by a goroutine of the connection. On Linux, over plain TCP, the
// caller of a client with one node reads its own reply, as long as it is alone on
// the connection: that saves two switches between goroutines. The parameter
// caller_reads=off of an address switches it off.
//
// Addresses are redis:// and rediss://. For Sentinel and Cluster use package
// rueidis or goredis.
package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/internal/resp"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
)

// Options are the settings of a node. The zero value works.
type Options = redis.Options

// Open returns the node of an address; redis.Address documents its forms.
// Nothing is connected before the first request, so a server that is down is no
// error here. Closing the node closes its connection.
func Open(address string, opts *Options) (node.Node, error) {
	return redis.Open(address, opts, open)
}

// Nodes returns a node for each address, as Open does.
func Nodes(addresses ...string) ([]node.Node, error) { return redis.OpenAll(addresses, open) }

func open(a *redis.Address) (redis.Driver, error) {
	if a.Kind != redis.Single {
		return nil, &node.ConfigError{Field: "address", Value: a.String(),
			Bound: "redis:// or rediss://; for Sentinel and Cluster use package rueidis or goredis"}
	}
	return &driver{address: a}, nil
}

// driver runs scripts over one connection, which it makes when it first needs
// one, and again when it broke.
type driver struct {
	address *redis.Address
	conn    atomic.Pointer[conn] // the last one that was made
	lends   atomic.Bool          // callers want to read

	mu     sync.Mutex
	closed bool
}

var errClosed = fmt.Errorf("%w (%w)", node.ErrClosed, node.ErrUnsent)

// current returns the connection, or makes one.
func (d *driver) current() (*conn, error) {
	if c := d.conn.Load(); c != nil && !c.gone.Load() {
		return c, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosed
	}
	if c := d.conn.Load(); c != nil && !c.gone.Load() {
		return c, nil
	}
	return d.connect(nil), nil
}

// connect makes the next connection, which begins with the requests that the last
// one did not send: they stay before those that follow. The mutex is held.
func (d *driver) connect(unsent []request) *conn {
	c := &conn{driver: d, wake: make(chan struct{}, 1), turns: make(chan struct{}, 1)}
	c.connecting, c.stop = context.WithCancel(context.Background())
	c.mu.Lock() // the timer may fire at once
	for _, r := range unsent {
		r.heard = 0
		c.pending.push(r)
		c.arm(r.deadline)
	}
	c.mu.Unlock()
	d.conn.Store(c)
	go c.run()
	return c
}

// moves returns those of the unsent requests of a connection that the next one
// sends. The mutex is held.
func (d *driver) moves(unsent []request) (moved []request) {
	for _, r := range unsent {
		if !r.givenUp && !d.closed {
			moved = append(moved, r)
		}
	}
	return moved
}

// start sends a request over the present connection. It calls what the request
// has for that with the reply.
func (d *driver) start(r request) {
	for {
		c, err := d.current()
		if err != nil {
			r.failed(err)
			return
		}
		if c.start(r) {
			return
		}
	}
}

// Start begins to run a script, and returns.
func (d *driver) Start(call redis.Call, limit time.Duration, done func(reply []string, err error)) {
	d.start(request{call: call, limit: limit, done: done})
}

func (d *driver) Eval(ctx context.Context, call redis.Call) ([]string, error) {
	return await(ctx, func(limit time.Duration, done func([]string, error)) {
		d.Start(call, limit, func(reply []string, err error) { done(slices.Clone(reply), err) })
	})
}

// await starts a request, and waits for its answer until the context ends. At the
// deadline the answer comes, too: it says whether the request was sent.
func await[T any](ctx context.Context, start func(limit time.Duration, done func(T, error))) (T, error) {
	type answer struct {
		reply T
		err   error
	}
	answers := make(chan answer, 1)
	limit := limitOf(ctx)
	start(limit, func(reply T, err error) { answers <- answer{reply, err} })
	select {
	case a := <-answers:
		return a.reply, a.err
	case <-ctx.Done():
	}
	if limit > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		a := <-answers
		return a.reply, a.err
	}
	var none T
	return none, ctx.Err()
}

// limitOf returns how long a caller waits; 0 for no limit.
func limitOf(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(deadline), time.Nanosecond)
}

// Setting asks CONFIG GET.
func (d *driver) Setting(ctx context.Context, name string) (map[string]string, error) {
	reply, err := d.do(ctx, "CONFIG", "GET", name)
	found := map[string]string{}
	for i := 0; i+1 < len(reply.Items); i += 2 {
		found[reply.Items[i].Text] = reply.Items[i+1].Text
	}
	return found, err
}

// do sends a command and waits for its reply.
func (d *driver) do(ctx context.Context, command ...string) (resp.Reply, error) {
	return await(ctx, func(limit time.Duration, done func(resp.Reply, error)) {
		d.start(request{command: command, limit: limit, raw: done})
	})
}

func (d *driver) Kind() redis.Kind { return redis.Single }

func (d *driver) Close() error {
	d.mu.Lock()
	d.closed = true
	c := d.conn.Load()
	d.mu.Unlock()
	if c != nil {
		c.fail(node.ErrClosed)
	}
	return nil
}
