// Package store keeps locks in a few keys of a Redis server. It is an example of a
// store for package casnode: it keeps rows, and knows no rules of locks. (For locks
// on Redis use store/redis, which is faster and handles replicas.)
package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redlatch/redlatch/store/casnode"
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

// The row of a name is a field in each of two hashes. Two sorted sets have the names and
// the places in the order of their bytes. The other two are the beginnings of keys: those
// of processes that live, and of channels for wakes.
var keys = []string{"rows:version", "rows:state", "rows:names", "rows:places", "rows:life:", "rows:wakes:"}

// server is the server's identity. It changes with each restart, in which the
// last writes may be lost.
const server = `local server = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
`

// present is what Read returns. A script is atomic, so what is put or written in it and
// what it returns are of one moment. The marker is the field with the empty name.
const present = server + `
	local row = function(name)
		return {redis.call('HGET', KEYS[1], name) or '', redis.call('HGET', KEYS[2], name) or ''}
	end
	local living = function(from, to)
		local all = {}
		for _, place in ipairs(redis.call('ZRANGEBYLEX', KEYS[4], from, to)) do
			local lives = redis.call('EXISTS', KEYS[5] .. string.match(place, '%w+$')) == 1
			if lives then all[#all + 1] = place else redis.call('ZREM', KEYS[4], place) end
		end
		return all
	end
	local present = function(name, from, to, own)
		local now, places, rank = redis.call('TIME'), living(from, to), 0
		for i, place in ipairs(places) do if place == own then rank = i end end
		return {server, now[1] * 1000000 + now[2], row(name), row(''), {unpack(places, 1, 3)}, rank}
	end
`

var readScript = redis.NewScript(present + `
	if ARGV[5] then redis.call(ARGV[5], KEYS[4], unpack(ARGV, 6)) end
	return present(unpack(ARGV))`)

func (s *store) Read(ctx context.Context, name string) (casnode.Snapshot, error) {
	return s.see(ctx, name, "")
}

// see executes a command on the places, if there is one, and reads.
func (s *store) see(ctx context.Context, name, own string, command ...any) (casnode.Snapshot, error) {
	from, to := queue(name)
	reply, err := readScript.Run(ctx, s.client, keys, append([]any{name, from, to, own}, command...)...).Slice()
	if err != nil {
		return casnode.Snapshot{}, err
	}
	return snapshot(name, reply), nil
}

func snapshot(name string, reply []any) casnode.Snapshot {
	return casnode.Snapshot{
		Server: reply[0].(string),
		Now:    time.UnixMicro(reply[1].(int64)),
		Row:    rowOf(name, reply[2].([]any)),
		Marker: rowOf(casnode.MarkerName, reply[3].([]any)),
		Places: placesOf(reply[4].([]any)),
		Rank:   int(reply[5].(int64)),
	}
}

func rowOf(name string, fields []any) casnode.Row {
	return casnode.Row{Name: name, Version: fields[0].(string), State: []byte(fields[1].(string))}
}

// It writes only if server, row and marker are those that were read. A row that
// does not exist has the empty version.
var swapScript = redis.NewScript(present + `
	local name, seen, marker, by = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
	local same = server == by and (redis.call('HGET', KEYS[1], name) or '') == seen
		and (name == '' or (redis.call('HGET', KEYS[1], '') or '') == marker)
	if same then
		redis.call('HSET', KEYS[1], name, ARGV[9])
		redis.call('HSET', KEYS[2], name, ARGV[10])
		if name ~= '' then redis.call('ZADD', KEYS[3], 0, name) end
		redis.call('ZREM', KEYS[4], ARGV[4])
		for i = 11, #ARGV, 2 do redis.call('PUBLISH', KEYS[6] .. ARGV[i], ARGV[i + 1]) end
	end
	return {same and 1 or 0, present(name, ARGV[2], ARGV[3])}`)

// Swap wraps no error in node.ErrUnsent: after any of them the row may have been
// written.
func (s *store) Swap(ctx context.Context, seen casnode.Snapshot, w casnode.Write) (done bool, now casnode.Snapshot, err error) {
	from, to := queue(w.Row.Name)
	args := []any{"", from, to, "", w.Row.Name, seen.Row.Version, seen.Marker.Version, seen.Server, w.Row.Version, w.Row.State}
	if w.Drop != nil {
		args[3] = member(*w.Drop)
	}
	for _, wake := range w.Wakes {
		args = append(args, wake.Process, wake.Text)
	}
	reply, err := swapScript.Run(ctx, s.client, keys, args...).Slice()
	if err != nil {
		return false, now, err
	}
	return reply[0].(int64) == 1, snapshot(w.Row.Name, reply[1].([]any)), nil
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
func (s *store) Hear(ctx context.Context, process string, ready func(), heard func(wake string)) error {
	sub := s.client.Subscribe(ctx, keys[5]+process)
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

// The functions below make the store a Placer. A place is a member of a sorted set, whose
// bytes are in the order of names, tickets and waiters.
func member(p casnode.Place) string {
	return fmt.Sprintf("%x %016x %s %s", p.Name, p.Ticket, p.Waiter, p.Process)
}

func placesOf(members []any) (all []casnode.Place) {
	for _, m := range members {
		var p casnode.Place
		if _, err := fmt.Sscanf(m.(string), "%x %x %s %s", &p.Name, &p.Ticket, &p.Waiter, &p.Process); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// queue returns the bounds of a name's places; those of all for no name.
func queue(name string) (from, to string) {
	if name == "" {
		return "-", "+"
	}
	return fmt.Sprintf("[%x ", name), fmt.Sprintf("(%x!", name)
}

func (s *store) Put(ctx context.Context, p casnode.Place, _ bool) (casnode.Snapshot, error) {
	return s.see(ctx, p.Name, member(p), "ZADD", 0, member(p))
}

func (s *store) Drop(ctx context.Context, p casnode.Place) (casnode.Snapshot, error) {
	return s.see(ctx, p.Name, "", "ZREM", member(p))
}

// Live sets a key that ends by itself.
func (s *store) Live(ctx context.Context, process string) (bool, error) {
	err := s.client.SetArgs(ctx, keys[4]+process, 1, redis.SetArgs{TTL: casnode.PlaceLease, Get: true}).Err()
	if err == redis.Nil {
		return false, nil
	}
	return err == nil, err
}

var placesScript = redis.NewScript(present + `return living(unpack(ARGV))`)

func (s *store) Places(ctx context.Context, name string) ([]casnode.Place, error) {
	from, to := queue(name)
	members, err := placesScript.Run(ctx, s.client, keys, from, to).Slice()
	return placesOf(members), err
}

func (s *store) Evict(ctx context.Context, name, process string) error {
	all, err := s.Places(ctx, name)
	for _, p := range all {
		if p.Process == process && err == nil {
			err = s.client.ZRem(ctx, keys[3], member(p)).Err()
		}
	}
	return err
}

func (s *store) String() string { return "rows://" + s.address }

func (s *store) Close() error { return s.client.Close() }
