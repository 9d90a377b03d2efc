// Package goredis makes redlatch nodes of Redis servers reached through the
// go-redis client, for programs that have one already.
package goredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
	"github.com/redlatch/redlatch/store/redis/internal/conns"
)

// How many connections of a node are reserved for extending locks that are
// held, and how many serve all other requests. Releases are among the others:
// one that fails is repeated in the background, and loses nothing. For a
// cluster both are clusterConnections, for each of its servers. Requests to
// different servers cannot wait for connections together, so there are more.
const (
	keptConnections    = 4
	askedConnections   = 16
	clusterConnections = 64
)

func init() {
	redis.RegisterTopologies("github.com/redlatch/redlatch/store/redis/goredis", open)
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
	d := &driver{kind: a.Kind, owned: true}
	ask, keep := askedConnections, keptConnections
	if a.Kind == redis.Cluster {
		ask, keep = clusterConnections, clusterConnections
	} else {
		d.ask.connections, d.keep.connections = ask, keep
	}
	d.conns.Most = ask + keep + 1 // one that listens
	d.ask.client = d.open(a, ask)
	d.keep.client = d.open(a, keep)
	return d, nil
}

// From returns a node over a client that the program already has. Options.Name
// must be set. Closing the node leaves the client open.
//
// The client's pool serves everything that the program does with it: if it is
// used up, locks cannot be extended. Nodes made by Open have connections set
// aside for that.
//
// Requests of a node have the client's NodeTimeout as their time limit, whatever
// ReadTimeout, WriteTimeout and ContextTimeoutEnabled say. After a request without
// an answer, the node tests the idle connections of the pool and drops those that
// a firewall or a NAT has forgotten. A client of a cluster keeps its own time
// limits: set ContextTimeoutEnabled there.
func From(client goredis.UniversalClient, opts *Options) (node.Node, error) {
	d, err := Driver(client)
	if err != nil {
		return nil, err
	}
	return redis.From(d, opts)
}

// Driver returns what runs scripts on a client that the program already has.
// Closing it leaves the client open.
func Driver(client goredis.UniversalClient) (redis.Driver, error) {
	if client == nil {
		return nil, &node.ConfigError{Field: "client", Value: nil, Bound: "a go-redis client"}
	}
	d := &driver{kind: redis.Single}
	switch c := client.(type) {
	case *goredis.ClusterClient:
		d.kind = redis.Cluster
		if !c.Options().ContextTimeoutEnabled {
			return nil, &node.ConfigError{Field: "ContextTimeoutEnabled", Value: false, Bound: "true for a client of a cluster: otherwise its requests have no time limit of ours"}
		}
	case *goredis.Client:
		ours := withContext(c)
		client, d.theirs = ours, ours
		// The library uses this address for a client that follows a master.
		if c.Options().Addr == "FailoverClient" {
			d.kind = redis.Sentinel
		}
	}
	d.ask.client, d.keep.client = client, client
	return d, nil
}

// open makes a client with at most the given number of connections to a server.
func (d *driver) open(a *redis.Address, connections int) goredis.UniversalClient {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		g := &d.conns
		if a.Kind == redis.Sentinel && slices.Contains(a.Hosts, address) {
			g = &d.sentinels // a silent server must not close the connection to a sentinel
		}
		c, err := g.Dial(ctx, network, address, a.TLS)
		if err != nil {
			return unmade{fmt.Errorf("%w (%w)", err, node.ErrUnsent)}, nil
		}
		return c, nil
	}
	return goredis.NewUniversalClient(&goredis.UniversalOptions{
		Addrs: a.Hosts, MasterName: a.Master, IsClusterMode: a.Kind == redis.Cluster,
		Username: a.Username, Password: a.Password, DB: a.Database,
		SentinelUsername: a.SentinelUsername, SentinelPassword: a.SentinelPassword,
		ClientName: "redlatch", DisableIdentity: true, DialerRetries: 1, Dialer: dial, PoolSize: connections,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		MaxRetries:               -1, // a round is our own retry, with a clock on it
		ContextTimeoutEnabled:    true,
	})
}

// driver runs scripts on go-redis clients: keep for extensions, ask for all
// else.
type driver struct {
	ask, keep pool
	kind      redis.Kind
	owned     bool            // made by us, and to be closed by us
	theirs    *goredis.Client // made by the program, with our time limits; nil for a cluster, and if owned
	testing   atomic.Bool     // the idle connections of theirs are being tested
	conns     conns.Group
	sentinels conns.Group
}

func (d *driver) Eval(ctx context.Context, call redis.Call) ([]string, error) {
	start := time.Now()
	reply, err := d.eval(ctx, "EVALSHA", call.Script.SHA1, call)
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = d.eval(ctx, "EVAL", call.Script.Source, call)
	}
	d.conns.Returned(ctx, start, err)
	if d.theirs != nil && timedOut(err) {
		d.testIdle(time.Since(start))
	}
	return reply, wrap(err)
}

func (d *driver) eval(ctx context.Context, command, script string, call redis.Call) ([]string, error) {
	p := &d.ask
	if call.Keep {
		p = &d.keep
	}
	for {
		cmd := newCmd(ctx, command, script, call)
		switch err := p.process(ctx, cmd); {
		case err == nil:
			if n, ok := cmd.Val().(int64); ok {
				return []string{strconv.FormatInt(n, 10)}, nil
			}
			return cmd.StringSlice()
		case !errors.Is(err, conns.ErrUnused):
			return nil, err
		}
		// Nothing was sent, and the pool has dropped one closed connection.
	}
}

// onlyOnce is a command that the library never retries by itself, even if the
// client's settings ask for it: after a second try it would be unknown whether
// the first was executed.
type onlyOnce struct{ *goredis.Cmd }

func (onlyOnce) NoRetry() bool { return true }

func newCmd(ctx context.Context, command, script string, call redis.Call) *goredis.Cmd {
	args := make([]any, 0, 3+len(call.Keys)+len(call.Args))
	args = append(args, command, script, len(call.Keys))
	for _, k := range call.Keys {
		args = append(args, k)
	}
	for _, a := range call.Args {
		args = append(args, a)
	}
	cmd := goredis.NewCmd(ctx, args...)
	if len(call.Keys) > 0 {
		cmd.SetFirstKeyPos(3)
	}
	return cmd
}

func wrap(err error) error {
	var server goredis.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &server):
		return redis.NewServerError(server.Error())
	case errors.Is(err, goredis.ErrClosed):
		return fmt.Errorf("%w (%w)", node.ErrClosed, node.ErrUnsent)
	case errors.Is(err, goredis.ErrPoolTimeout), errors.Is(err, goredis.ErrPoolExhausted):
		return fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	return err
}

// Setting asks CONFIG GET.
func (d *driver) Setting(ctx context.Context, name string) (map[string]string, error) {
	found, err := d.ask.client.ConfigGet(ctx, name).Result()
	return found, wrap(err)
}

func (d *driver) Kind() redis.Kind { return d.kind }

func (d *driver) Close() error {
	if !d.owned {
		return nil
	}
	err := errors.Join(d.ask.client.Close(), d.keep.client.Close())
	// The library may have lost some of them.
	d.conns.Close()
	d.sentinels.Close()
	return err
}
