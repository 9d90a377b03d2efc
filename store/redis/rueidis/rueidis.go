// Package rueidis makes redlatch nodes of Redis servers reached through the
// rueidis client. Choose it for Sentinel and Cluster, and for programs that have
// such a client; for single servers package direct is faster. Requests of many
// goroutines share one connection in one pipeline, and stay in order on it.
package rueidis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/internal/conns"
)

func init() {
	redis.RegisterTopologies("github.com/redlatch/redlatch/store/redis/rueidis", open)
}

// Options are the settings of a node. The zero value works.
type Options = redis.Options

// Open returns the node of an address; redis.Address documents its forms.
// Nothing is connected before the first request, so a server that is down is no
// error here. Closing the node closes its connections.
func Open(address string, opts *Options) (node.Node, error) {
	return redis.Open(address, opts, open)
}

// Nodes returns a node for each address, as Open does.
func Nodes(addresses ...string) ([]node.Node, error) { return redis.OpenAll(addresses, open) }

func open(a *redis.Address) (redis.Driver, error) {
	d := &driver{kind: a.Kind}
	d.open = opener(a, &d.conns)
	return d, nil
}

// From returns a node over a client that the program already has. Options.Name
// must be set. Closing the node leaves the client open.
//
// The client keeps its own time limits. With the library's defaults, a
// connection that a firewall or a NAT has forgotten is closed after 11 s, and
// leases of 10 s are lost with it. Set ClientOption.ConnWriteTimeout to a
// quarter of the shortest TTL at most, and Dialer.KeepAlive to a second. Nodes
// made by Open close such a connection after twice the client's NodeTimeout.
func From(client rueidis.Client, opts *Options) (node.Node, error) {
	d, err := Driver(client)
	if err != nil {
		return nil, err
	}
	return redis.From(d, opts)
}

// Driver returns what runs scripts on a client that the program already has.
// Closing it leaves the client open.
func Driver(client rueidis.Client) (redis.Driver, error) {
	if client == nil {
		return nil, &node.ConfigError{Field: "client", Value: nil, Bound: "a rueidis client"}
	}
	d := &driver{kind: redis.Single}
	switch client.Mode() {
	case rueidis.ClientModeCluster:
		d.kind = redis.Cluster
	case rueidis.ClientModeSentinel:
		d.kind = redis.Sentinel
	}
	d.client.Store(&client)
	return d, nil
}

// opener returns the function that makes the client for an address, with its
// connections in the group.
func opener(a *redis.Address, group *conns.Group) func() (rueidis.Client, error) {
	const noPings = -1 // no pings by the library, one a second: the group detects silence without them
	dial := func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		if dialer.KeepAlive != noPings {
			// A silent server must not close the connection to a sentinel.
			return new(conns.Group).Dial(ctx, "tcp", address, config)
		}
		return group.Dial(ctx, "tcp", address, config)
	}
	opt := rueidis.ClientOption{
		InitAddress: a.Hosts, Username: a.Username, Password: a.Password, SelectDB: a.Database, TLSConfig: a.TLS,
		ClientName: "redlatch", ClientSetInfo: rueidis.DisableClientSetInfo, DisableCache: true,
		DialCtxFn: dial, Dialer: net.Dialer{KeepAlive: noPings}, ForceSingleClient: a.Kind == redis.Single,
		DisableRetry:      true, // a round is our own retry, with a clock on it
		PipelineMultiplex: -1,   // one connection: requests stay in order
	}
	if a.Kind == redis.Sentinel {
		opt.Sentinel = rueidis.SentinelOption{
			MasterSet: a.Master, TLSConfig: a.TLS,
			Username: a.SentinelUsername, Password: a.SentinelPassword,
		}
	}
	return func() (rueidis.Client, error) {
		client, err := rueidis.NewClient(opt)
		if client != nil && a.Kind == redis.Single {
			// It reconnects by itself, even if this first try failed.
			return client, nil
		}
		return client, err
	}
}

// driver runs scripts on a rueidis client, which it makes when it first needs
// one: making one connects, and the server may be down.
type driver struct {
	client atomic.Pointer[rueidis.Client]
	open   func() (rueidis.Client, error) // nil for a client that is not ours
	kind   redis.Kind
	conns  conns.Group // those of a client that is ours

	mu      sync.Mutex
	opening *opening
	closed  bool
}

// opening is a client that is being made; err is set before done is closed.
type opening struct {
	done chan struct{}
	err  error
}

var errClosed = fmt.Errorf("%w (%w)", node.ErrClosed, node.ErrUnsent)

// get returns the client, waiting for it to be made until ctx ends.
func (d *driver) get(ctx context.Context) (rueidis.Client, error) {
	if c := d.client.Load(); c != nil {
		return *c, nil
	}
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, errClosed
	}
	o := d.opening
	if o == nil {
		o = &opening{done: make(chan struct{})}
		d.opening = o
		go d.make(o)
	}
	d.mu.Unlock()
	select {
	case <-o.done:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w while connecting (%w)", ctx.Err(), node.ErrUnsent)
	}
	if c := d.client.Load(); c != nil {
		return *c, nil
	}
	return nil, fmt.Errorf("%w (%w)", o.err, node.ErrUnsent)
}

func (d *driver) make(o *opening) {
	client, err := d.open()
	d.mu.Lock()
	defer d.mu.Unlock()
	defer close(o.done)
	d.opening = nil
	switch {
	case err != nil:
		o.err = err
	case d.closed:
		client.Close()
		o.err = node.ErrClosed
	default:
		d.client.Store(&client)
	}
}

func (d *driver) Eval(ctx context.Context, call redis.Call) ([]string, error) {
	start := time.Now()
	reply, err := d.eval(ctx, call)
	d.conns.Returned(ctx, start, err)
	return reply, err
}

func (d *driver) eval(ctx context.Context, call redis.Call) ([]string, error) {
	client, err := d.get(ctx)
	if err != nil {
		return nil, err
	}
	n := int64(len(call.Keys))
	var reply []string
	for range 3 {
		reply, err = parts(client.Do(ctx, client.B().Evalsha().Sha1(call.Script.SHA1).Numkeys(n).
			Key(call.Keys...).Arg(call.Args...).Build()))
		if !givenUpByAnother(ctx, err) {
			break
		}
	}
	if e, ok := rueidis.IsRedisErr(err); ok && e.IsNoScript() {
		reply, err = parts(client.Do(ctx, client.B().Eval().Script(call.Script.Source).Numkeys(n).
			Key(call.Keys...).Arg(call.Args...).Build()))
	}
	return reply, wrap(err)
}

// parts returns a reply as an array of strings.
func parts(r rueidis.RedisResult) ([]string, error) {
	if m, err := r.ToMessage(); err == nil && m.IsInt64() {
		n, err := m.AsInt64()
		return []string{strconv.FormatInt(n, 10)}, err
	}
	return r.AsStrSlice()
}

// givenUpByAnother reports that no connection was made because the context of
// another request ended: requests that wait for one connection share the error
// of the request that began to connect. Nothing was sent, and this one may try
// again.
func givenUpByAnother(ctx context.Context, err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" || ctx.Err() != nil {
		return false
	}
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func wrap(err error) error {
	switch e, ok := rueidis.IsRedisErr(err); {
	case err == nil:
		return nil
	case ok:
		return redis.NewServerError(e.Error())
	case errors.Is(err, rueidis.ErrClosing):
		return errClosed
	}
	return err
}

// Setting asks CONFIG GET.
func (d *driver) Setting(ctx context.Context, name string) (map[string]string, error) {
	client, err := d.get(ctx)
	if err != nil {
		return nil, err
	}
	found, err := client.Do(ctx, client.B().ConfigGet().Parameter(name).Build()).AsStrMap()
	return found, wrap(err)
}

func (d *driver) Kind() redis.Kind { return d.kind }

func (d *driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if c := d.client.Load(); c != nil && d.open != nil {
		(*c).Close()
		d.conns.Close() // one may be made meanwhile
	}
	return nil
}
