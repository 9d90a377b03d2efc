package redsync

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	pools "github.com/go-redsync/redsync/v4/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/node"
	"github.com/redlatch/redlatch/store/redis"
)

// poolNodes returns a node for each pool. They note in arrivals what is answered.
func poolNodes(list []pools.Pool, arrivals *arrivals) ([]redlatch.Node, error) {
	nodes := make([]redlatch.Node, len(list))
	for i, p := range list {
		if p == nil {
			return nil, &redlatch.ConfigError{Field: fmt.Sprintf("pools[%d]", i), Value: nil, Bound: "a pool of redsync"}
		}
		nodes[i] = redis.New(&driver{p, arrivals}, fmt.Sprintf("pool #%d", i))
	}
	return nodes, nil
}

// driver runs scripts over a pool of redsync. It cannot subscribe: a pool has no
// way to do so.
type driver struct {
	pool     pools.Pool
	arrivals *arrivals
}

// Eval runs a script. The connection itself sends the source of a script that
// the server does not know.
func (d *driver) Eval(ctx context.Context, call redis.Call) ([]string, error) {
	if len(call.Args) > 0 { // the first is the value, if the script is about one
		defer d.arrivals.note(request{call.Script.Name, call.Args[0]})
	}
	conn, err := d.pool.Get(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", err, node.ErrUnsent)
	}
	defer conn.Close()
	args := make([]any, 0, len(call.Keys)+len(call.Args))
	for _, text := range slices.Concat(call.Keys, call.Args) {
		args = append(args, text)
	}
	reply, err := conn.Eval(pools.NewScript(len(call.Keys), call.Script.Source, call.Script.SHA1), args...)
	if err != nil {
		return nil, asServerError(err)
	}
	return texts(reply)
}

// Kind returns Single: a pool does not say what it leads to.
func (*driver) Kind() redis.Kind { return redis.Single }

// Close leaves the pool open. It is the caller's.
func (*driver) Close() error { return nil }

// texts returns a reply as texts. Clients differ in the types that they use.
func texts(reply any) ([]string, error) {
	list, ok := reply.([]any)
	if !ok {
		list = []any{reply}
	}
	out := make([]string, len(list))
	for i, part := range list {
		switch v := part.(type) {
		case string:
			out[i] = v
		case []byte:
			out[i] = string(v)
		case int64:
			out[i] = strconv.FormatInt(v, 10)
		default:
			return nil, fmt.Errorf("redlatch: unexpected %T in the reply to a script", part)
		}
	}
	return out, nil
}

// codes begin the error replies of a server. Clients have a type of their own
// for such a reply, but each another one.
var codes = []string{
	"ASK", "BUSY", "CLUSTERDOWN", "CROSSSLOT", "ERR", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOAUTH", "NOINFO",
	"NOPERM", "NOREPLICAS", "NOSCRIPT", "OOM", "READONLY", "TRYAGAIN", "UNREPLICATED", "WRONGPASS", "WRONGTYPE",
}

// asServerError returns the error of a client as a *redis.ServerError if it is a
// server's reply. Any other error leaves open whether the script has run.
func asServerError(err error) error {
	if _, network := err.(net.Error); network {
		return err
	}
	if code, _, found := strings.Cut(err.Error(), " "); found && slices.Contains(codes, code) {
		return redis.NewServerError(err.Error())
	}
	return err
}
