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
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/redis"
	"github.com/redlatch/redlatch/redis/internal/conns"
)

// How many connections of a node are reserved for extending locks that are
// held, and how many serve all other requests. Releases are among the others:
// one that fails is repeated in the background, and loses nothing. For a
// cluster these are the numbers for each of its servers. Requests to different
// servers cannot wait for connections together, so there are more.
const (
	keptConnections        = 4
	askedConnections       = 16
	keptClusterConnections = 64
)

// Nodes returns a node for each address; redis.Address documents their forms.
// Nothing is connected before the first request, so servers that are down are
// no error here. Closing a node closes its connections.
func Nodes(addresses ...string) ([]node.Node, error) {
	list, err := redis.ParseAddresses(addresses)
	if err != nil {
		return nil, err
	}
	var nodes []node.Node
	for _, a := range list {
		d := &driver{prompt: a.Kind == redis.Single, kind: a.Kind, owned: true}
		if a.Kind == redis.Cluster {
			d.ask.client = open(a, &d.conns, 0)
			d.keep.client = open(a, &d.conns, keptClusterConnections)
		} else {
			d.ask.connections, d.keep.connections = askedConnections, keptConnections
			d.ask.client = open(a, &d.conns, askedConnections)
			d.keep.client = open(a, &d.conns, keptConnections)
		}
		nodes = append(nodes, redis.New(d, a.String()))
	}
	return nodes, nil
}

// Node returns a node over a client that the program already has, called name
// in errors and logs. Closing the node leaves the client open.
//
// The name is part of the membership: all clients of the same nodes must use the
// same name for this one, or are refused by guarded nodes (Options.NodeList is
// the way out). The address of the server is a good choice, in the form in which
// the other clients list it.
//
// The client's pool serves everything that the program does with it: if it is
// used up, locks cannot be extended. Nodes made by Nodes have connections set
// aside for that.
//
// The client keeps its own time limits. Set Options.ContextTimeoutEnabled, or
// set ReadTimeout and WriteTimeout to the node time limit. Otherwise requests
// to a server that does not answer wait in the background until the client's
// limits end them. When a firewall or a NAT forgets the connections of a pool,
// each costs one request before it is closed: keep PoolSize small, or set
// ConnMaxIdleTime below the time after which they are forgotten. Nodes made by
// Nodes close all of them after twice the client's NodeTimeout.
func Node(client goredis.UniversalClient, name string) (node.Node, error) {
	if name == "" {
		return nil, &node.ConfigError{Field: "name", Value: name, Bound: "what all clients call this node, such as its address"}
	}
	d, err := Driver(client)
	if err != nil {
		return nil, err
	}
	return redis.New(d, name), nil
}

// Driver returns what runs scripts on a client that the program already has.
// Closing it leaves the client open.
func Driver(client goredis.UniversalClient) (redis.Driver, error) {
	if client == nil {
		return nil, &node.ConfigError{Field: "client", Value: nil, Bound: "a go-redis client"}
	}
	d := &driver{kind: redis.Single}
	d.ask.client, d.keep.client = client, client
	switch c := client.(type) {
	case *goredis.ClusterClient:
		d.kind = redis.Cluster
	case *goredis.Client:
		d.prompt = c.Options().ContextTimeoutEnabled
		// The library uses this address for a client that follows a master.
		if c.Options().Addr == "FailoverClient" {
			d.kind, d.prompt = redis.Sentinel, false
		}
	}
	return d, nil
}

// open makes a client with at most the given number of connections, which are
// in the group; 0 for the library's default.
func open(a *redis.Address, group *conns.Group, connections int) goredis.UniversalClient {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		g := group
		if a.Kind == redis.Sentinel && slices.Contains(a.Hosts, address) {
			g = new(conns.Group) // a silent server must not close the connection to a sentinel
		}
		c, err := g.Dial(ctx, network, address, a.TLS)
		if err != nil {
			return unmade{fmt.Errorf("%w (%w)", err, node.ErrUnsent)}, nil
		}
		return c, nil
	}
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	const noRetries = -1 // a round is our own retry, with a clock on it
	switch a.Kind {
	case redis.Sentinel:
		return goredis.NewFailoverClient(&goredis.FailoverOptions{
			MasterName: a.Master, SentinelAddrs: a.Hosts,
			SentinelUsername: a.SentinelUsername, SentinelPassword: a.SentinelPassword,
			Username: a.Username, Password: a.Password, DB: a.Database,
			ClientName: "redlatch", DisableIdentity: true, DialerRetries: 1,
			MaxRetries: noRetries, Dialer: dial, ContextTimeoutEnabled: true, PoolSize: connections,
		})
	case redis.Cluster:
		return goredis.NewClusterClient(&goredis.ClusterOptions{
			Addrs:    a.Hosts,
			Username: a.Username, Password: a.Password,
			ClientName: "redlatch", DisableIdentity: true, MaintNotificationsConfig: quiet, DialerRetries: 1,
			MaxRetries: noRetries, Dialer: dial, ContextTimeoutEnabled: true, PoolSize: connections,
		})
	}
	return goredis.NewClient(&goredis.Options{
		Addr:     a.Hosts[0],
		Username: a.Username, Password: a.Password, DB: a.Database,
		ClientName: "redlatch", DisableIdentity: true, MaintNotificationsConfig: quiet, DialerRetries: 1,
		MaxRetries: noRetries, Dialer: dial, ContextTimeoutEnabled: true, PoolSize: connections,
	})
}

// driver runs scripts on go-redis clients: keep for extensions, ask for all
// else.
type driver struct {
	ask, keep pool
	prompt    bool
	kind      redis.Kind
	owned     bool // made by us, and to be closed by us
	conns     conns.Group
}

func (d *driver) Eval(ctx context.Context, call redis.Call) ([]string, error) {
	start := time.Now()
	reply, err := d.eval(ctx, "EVALSHA", call.Script.SHA1, call)
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = d.eval(ctx, "EVAL", call.Script.Source, call)
	}
	d.conns.Returned(ctx, start, err)
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

func (d *driver) ReturnsByDeadline() bool { return d.prompt }

func (d *driver) Kind() redis.Kind { return d.kind }

func (d *driver) Close() error {
	if !d.owned {
		return nil
	}
	return errors.Join(d.ask.client.Close(), d.keep.client.Close())
}
