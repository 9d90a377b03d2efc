// Package store keeps locks in three keys of a Redis server. It is an example of a
// store for package casnode: it keeps rows, and knows no rules of locks. (For locks
// on Redis use store/redis, which is faster and handles replicas.)
package store

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redlatch/redlatch/node/casnode"
)

// store is one server without replicas, whose maxmemory-policy is noeviction.
type store struct {
	client  *redis.Client
	address string
}

// Open returns a node for a server.
func Open(address string) *casnode.Node { return casnode.New(open(address), nil) }

func open(address string) *store {
	// No retries: if a Swap succeeded and its reply was lost, a second one would
	// report a refusal.
	options := redis.Options{Addr: address, MaxRetries: -1, ContextTimeoutEnabled: true}
	return &store{redis.NewClient(&options), address}
}

// The row of a name is a field in each of two hashes. The sorted set has the names
// in the order of their bytes.
var keys = []string{"rows:version", "rows:state", "rows:names"}

const channel = "rows:wakes"

// server is the server's identity. It changes with each restart, in which the
// last writes may be lost.
const server = `local server = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
`

// A script is atomic. The marker is the field with the empty name.
var readScript = redis.NewScript(server + `
	local row = function(name)
		return {redis.call('HGET', KEYS[1], name) or '', redis.call('HGET', KEYS[2], name) or ''}
	end
	local now = redis.call('TIME')
	return {server, now[1] * 1000000 + now[2], row(ARGV[1]), row('')}`)

func (s *store) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	reply, err := readScript.Run(ctx, s.client, keys, name).Slice()
	if err != nil {
		return casnode.Snapshot{}, err
	}
	return casnode.Snapshot{
		Server: reply[0].(string),
		Now:    time.UnixMicro(reply[1].(int64)),
		Row:    rowOf(name, reply[2].([]any)),
		Marker: rowOf(casnode.MarkerName, reply[3].([]any)),
	}, nil
}

func rowOf(name string, fields []any) casnode.Row {
	return casnode.Row{Name: name, Version: fields[0].(string), State: []byte(fields[1].(string))}
}

// It writes only if server, row and marker are those that were read. A row that
// does not exist has the empty version.
var swapScript = redis.NewScript(server + `
	local name, seen, marker, by = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
	if server ~= by or (redis.call('HGET', KEYS[1], name) or '') ~= seen
		or name ~= '' and (redis.call('HGET', KEYS[1], '') or '') ~= marker then
		return 0
	end
	redis.call('HSET', KEYS[1], name, ARGV[5])
	redis.call('HSET', KEYS[2], name, ARGV[6])
	if name ~= '' then redis.call('ZADD', KEYS[3], 0, name) end
	for i = 8, #ARGV do redis.call('PUBLISH', ARGV[7], ARGV[i]) end
	return 1`)

// Swap wraps no error in node.ErrUnsent: after any of them the row may have been
// written.
func (s *store) Swap(ctx context.Context, seen casnode.Snapshot, row casnode.Row, wakes []string) (bool, error) {
	args := []any{row.Name, seen.Row.Version, seen.Marker.Version, seen.Server, row.Version, row.State, channel}
	for _, w := range wakes {
		args = append(args, w)
	}
	return swapScript.Run(ctx, s.client, keys, args...).Bool()
}

func (s *store) Scan(ctx context.Context, after string, limit int) (rows []casnode.Row, err error) {
	names, err := s.client.ZRangeArgs(ctx, redis.ZRangeArgs{Key: keys[2], ByLex: true, Start: "(" + after, Stop: "+", Count: int64(limit)}).Result()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		seen, err := s.Read(ctx, name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, seen.Row)
	}
	return rows, nil
}

var removeScript = redis.NewScript(server + `
	for i = 2, #ARGV, 2 do
		if server == ARGV[1] and redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
			redis.call('HDEL', KEYS[1], ARGV[i])
			redis.call('HDEL', KEYS[2], ARGV[i])
			redis.call('ZREM', KEYS[3], ARGV[i])
		end
	end`)

// Remove makes the store a Sweeper.
func (s *store) Remove(ctx context.Context, seen casnode.Snapshot, rows []casnode.Row) error {
	args := []any{seen.Server}
	for _, r := range rows {
		args = append(args, r.Name, r.Version)
	}
	if err := removeScript.Run(ctx, s.client, keys, args...).Err(); err != redis.Nil {
		return err
	}
	return nil
}

// Hear makes the store a Hearer. It probes a silent connection, because a firewall
// may have dropped it.
func (s *store) Hear(ctx context.Context, ready func(), heard func(wake string)) error {
	sub := s.client.Subscribe(ctx, channel)
	defer sub.Close()
	defer context.AfterFunc(ctx, func() { sub.Close() })()
	for probed := false; ; {
		message, err := sub.ReceiveTimeout(ctx, 3*time.Second)
		var late net.Error
		switch {
		case errors.As(err, &late) && late.Timeout() && !probed:
			probed = true
			if err := sub.Ping(ctx); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		}
		probed = false
		switch m := message.(type) {
		case *redis.Subscription:
			ready()
		case *redis.Message:
			heard(m.Payload)
		}
	}
}

func (s *store) String() string { return "rows:" + s.address }

func (s *store) Close() error { return s.client.Close() }
