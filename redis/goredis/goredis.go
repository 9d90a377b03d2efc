// Package goredis makes redlatch nodes of Redis servers reached through the
// go-redis client, for programs that have one already.
package goredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/redis"
)

const (
	// dialTimeout bounds the time in which a connection must be made.
	dialTimeout = 2 * time.Second
	// keptConnections is how many connections of a node serve only the
	// extension of locks that are held. Releases are not among them: one that
	// fails is made up for in the background, and loses nothing.
	keptConnections = 4
)

// Nodes returns a node for each address; redis.Address documents their forms.
// Nothing is connected before the first request, so servers that are down are
// no error here. Closing a node closes its connections.
func Nodes(addresses ...string) ([]redlatch.Node, error) {
	list, err := redis.ParseAddresses(addresses)
	if err != nil {
		return nil, err
	}
	var nodes []redlatch.Node
	for _, a := range list {
		nodes = append(nodes, redis.New(&driver{
			ask:    open(a, 0),
			keep:   open(a, keptConnections),
			prompt: a.Kind == redis.Single,
			kind:   a.Kind,
			owned:  true,
		}, a.String()))
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
func Node(client goredis.UniversalClient, name string) (redlatch.Node, error) {
	if name == "" {
		return nil, &redlatch.ConfigError{Field: "name", Value: name, Bound: "what all clients call this node, such as its address"}
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
		return nil, &redlatch.ConfigError{Field: "client", Value: nil, Bound: "a go-redis client"}
	}
	d := &driver{ask: client, keep: client, kind: redis.Single}
	switch c := client.(type) {
	case *goredis.ClusterClient:
		d.kind = redis.Cluster
	case *goredis.Client:
		d.prompt = c.Options().ContextTimeoutEnabled
		// That is how the library calls a client that follows a master.
		if c.Options().Addr == "FailoverClient" {
			d.kind, d.prompt = redis.Sentinel, false
		}
	}
	return d, nil
}

// open makes a client with at most the given number of connections; 0 for the
// library's default.
func open(a *redis.Address, connections int) goredis.UniversalClient {
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	const noRetries = -1 // a round is our own retry, with a clock on it
	switch a.Kind {
	case redis.Sentinel:
		return goredis.NewFailoverClient(&goredis.FailoverOptions{
			MasterName: a.Master, SentinelAddrs: a.Hosts,
			SentinelUsername: a.SentinelUsername, SentinelPassword: a.SentinelPassword,
			Username: a.Username, Password: a.Password, DB: a.Database, TLSConfig: a.TLS,
			ClientName: "redlatch", DisableIdentity: true, DialerRetries: 1,
			MaxRetries: noRetries, DialTimeout: dialTimeout, ContextTimeoutEnabled: true, PoolSize: connections,
		})
	case redis.Cluster:
		return goredis.NewClusterClient(&goredis.ClusterOptions{
			Addrs:    a.Hosts,
			Username: a.Username, Password: a.Password, TLSConfig: a.TLS,
			ClientName: "redlatch", DisableIdentity: true, MaintNotificationsConfig: quiet, DialerRetries: 1,
			MaxRetries: noRetries, DialTimeout: dialTimeout, ContextTimeoutEnabled: true, PoolSize: connections,
		})
	}
	return goredis.NewClient(&goredis.Options{
		Addr:     a.Hosts[0],
		Username: a.Username, Password: a.Password, DB: a.Database, TLSConfig: a.TLS,
		ClientName: "redlatch", DisableIdentity: true, MaintNotificationsConfig: quiet, DialerRetries: 1,
		MaxRetries: noRetries, DialTimeout: dialTimeout, ContextTimeoutEnabled: true, PoolSize: connections,
	})
}

// driver runs scripts on go-redis clients: keep for extensions, ask for all
// else.
type driver struct {
	ask, keep goredis.UniversalClient
	prompt    bool
	kind      redis.Kind
	owned     bool // made by us, and to be closed by us
}

func (d *driver) Eval(ctx context.Context, call redis.Call) ([]string, error) {
	client := d.ask
	if call.Keep {
		client = d.keep
	}
	reply, err := eval(ctx, client, "EVALSHA", call.Script.SHA1, call)
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = eval(ctx, client, "EVAL", call.Script.Source, call)
	}
	return reply, wrap(err)
}

// onlyOnce is a command that the library does not try again by itself, whatever
// the client's settings: after a second try nobody could say any more what
// became of the first.
type onlyOnce struct{ *goredis.Cmd }

func (onlyOnce) NoRetry() bool { return true }

func eval(ctx context.Context, client goredis.UniversalClient, command, script string, call redis.Call) ([]string, error) {
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
	if err := client.Process(ctx, onlyOnce{cmd}); err != nil {
		return nil, err
	}
	return cmd.StringSlice()
}

func wrap(err error) error {
	var server goredis.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &server):
		return redis.NewServerError(server.Error())
	case errors.Is(err, goredis.ErrClosed):
		return fmt.Errorf("%w (%w)", redlatch.ErrClosed, redlatch.ErrUnsent)
	case errors.Is(err, goredis.ErrPoolTimeout), errors.Is(err, goredis.ErrPoolExhausted):
		return fmt.Errorf("%w (%w)", err, redlatch.ErrUnsent)
	}
	return err
}

func (d *driver) ReturnsByDeadline() bool { return d.prompt }

func (d *driver) Kind() redis.Kind { return d.kind }

func (d *driver) Close() error {
	if !d.owned {
		return nil
	}
	return errors.Join(d.ask.Close(), d.keep.Close())
}
