// Package contender has what is measured: each contender is opened in the same
// way and asked for the same two things, a lock and its release.
package contender

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/redlatch/redlatch/store/redis/goredis"
	"github.com/redlatch/redlatch/store/redis/rueidis"
	"github.com/redlatch/redlatch/test/bench/server"
)

// TTL is the time to live of every lock here, for every contender, unless its note
// says otherwise.
const TTL = 10 * time.Second

// releaseTimeout bounds a release, on a context of its own: the clients of
// some contenders would otherwise wait for a frozen server for many seconds.
const releaseTimeout = time.Second

// Release releases a lock.
type Release func(context.Context) error

// Do returns when the contender says that the lock is released.
func (r Release) Do() error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	return r(ctx)
}

// Locker takes locks for one process.
type Locker struct {
	// Lock waits for the lock until ctx ends.
	Lock func(ctx context.Context, name string) (Release, error)
	// Fork is set if each contender for one name needs a Locker of its own.
	Fork func() (*Locker, error)
	// Close closes the connections.
	Close func()
}

// Contender is a row of tables.
type Contender struct {
	// Key is its name on the command line, Title in tables, and Note what a
	// reader of the table has to know about its settings.
	Key, Title, Note string
	Server           server.Kind
	// Fixed is the number of servers that it is for; 0 for any.
	Fixed int
	// Live is the time to live of its locks; 0 for TTL.
	Live time.Duration
	// Native says that others on its servers are compared with it.
	Native bool
	// Guarded says that it has the restart guard on one server, too.
	Guarded bool
	// Direct are the commands which it sends to Redis itself, besides the
	// running of scripts and what every client sends about its connection.
	Direct []string
	// Open connects to the servers.
	Open func(ctx context.Context, addresses []string) (*Locker, error)
}

// TTL returns the time to live of its locks.
func (c *Contender) TTL() time.Duration { return cmp.Or(c.Live, TTL) }

// everyones are the commands that any client of Redis sends itself: the
// running of scripts, the subscribing, and what concerns the connection. None
// of them can be run by a script.
var everyones = strings.Fields(`eval evalsha eval_ro evalsha_ro fcall fcall_ro
	subscribe unsubscribe psubscribe punsubscribe ssubscribe sunsubscribe
	hello auth select ping quit reset multi exec watch unwatch`)

// Sent returns how many of the counted commands clients sent over their
// connections. A server counts those that scripts run under the same names,
// and in its total, so they are distinguished by name: a script is one command,
// whatever it runs inside. That the names are right is checked against MONITOR
// in a test.
func (c *Contender) Sent(commands map[string]int64) int64 {
	var sent int64
	for name, n := range commands {
		// Subcommands are counted as client|setname, script|load.
		container, _, sub := strings.Cut(name, "|")
		if c.Server != server.RedisKind || slices.Contains(everyones, name) || slices.Contains(c.Direct, name) ||
			sub && (container == "client" || container == "script" || container == "function") {
			sent += n
		}
	}
	return sent
}

// All are all contenders.
var All = slices.Concat(onRedis, onDatabases, onConsensus, capacity)

// Find returns the contenders with the given keys, separated by spaces.
func Find(keys string) ([]*Contender, error) {
	var list []*Contender
	for key := range strings.FieldsSeq(keys) {
		i := slices.IndexFunc(All, func(c *Contender) bool { return c.Key == key })
		if i < 0 {
			return nil, fmt.Errorf("no contender %q", key)
		}
		list = append(list, All[i])
	}
	return list, nil
}

// onRedis are the locks that one may hold, on Redis and etcd.
var onRedis = []*Contender{
	{Key: "redlatch", Title: "redlatch", Server: server.RedisKind,
		Note: "its own driver, zero options but the TTL: tokens on; the restart guard on with several servers and off with 1, as is the default",
		Open: openRedlatch(server.RedisKind, "", plain)},
	{Key: "redlatch-rueidis", Title: "redlatch over rueidis", Server: server.RedisKind,
		Note: "rueidis driver, zero options but the TTL",
		Open: openOver(rueidis.Nodes)},
	{Key: "redlatch-goredis", Title: "redlatch over go-redis", Server: server.RedisKind,
		Note: "go-redis driver, zero options but the TTL",
		Open: openOver(goredis.Nodes)},
	{Key: "redsync-goredis", Title: "redsync, go-redis", Server: server.RedisKind, Direct: []string{"set", "setnx"},
		Note: "its default delays (random, 50 to 250 ms), tries unlimited; go-redis defaults, but `ContextTimeoutEnabled`",
		Open: openRedsync(goRedisPool)},
	{Key: "redsync-rueidis", Title: "redsync, rueidis", Server: server.RedisKind, Native: true, Direct: []string{"set", "setnx"},
		Note: "redsync's default delays, tries unlimited; rueidis defaults",
		Open: openRedsync(rueidisPool)},
	{Key: "redsync-failfast", Title: "redsync, rueidis, fail-fast", Server: server.RedisKind, Fixed: 5, Direct: []string{"set", "setnx"},
		Note: "as above, with `WithFailFast(true)`: it returns at a majority, and its release can overtake the lock on the rest",
		Open: openRedsync(rueidisPool, redsync.WithFailFast(true))},
	{Key: "redislock", Title: "bsm/redislock", Server: server.RedisKind, Fixed: 1,
		Note: "one server only, by its nature; `LinearBackoff(100ms)` as its example for waiting has it, tries unlimited; go-redis defaults",
		Open: openRedislock},
	{Key: "rueidislock", Title: "rueidislock", Server: server.RedisKind, Fixed: 1,
		Note: "one server only: its majority is of keys in one place; `KeyMajority: 1`, `NoLoopTracking`, `TryNextAfter` 250 ms",
		Open: openRueidislock},
	{Key: "etcd", Title: "etcd concurrency", Server: server.EtcdKind, Native: true, Fixed: server.Members,
		Note: "client v3, a session for each contender; three members, which agree on every write and write to disk before they answer",
		Open: openEtcd},
}

// onConsensus are the contenders on a cluster that agrees on every write, with the
// one on etcd above.
var onConsensus = []*Contender{
	{Key: "redlatch-etcd", Title: "redlatch on etcd", Server: server.EtcdKind, Fixed: server.Members,
		Note: "`etcd.Open`, zero options but the TTL: lease, token, queue in order, wakes by a watch",
		Open: openRedlatch(server.EtcdKind, "", plain)},
	{Key: "redlatch-zookeeper", Title: "redlatch on ZooKeeper", Server: server.ZooKeeper, Fixed: server.Members,
		Note: "`zookeeper.Open`, zero options but the TTL: lease, token, queue in order, wakes by an inbox",
		Open: openRedlatch(server.ZooKeeper, "", plain)},
	{Key: "zk-lock", Title: "go-zookeeper's Lock", Server: server.ZooKeeper, Native: true, Fixed: server.Members,
		Note: "`zk.Lock`, the recipe of ordered znodes; the TTL is the timeout of its session; no token",
		Open: openZKLock},
}

// capacity is redlatch with settings of its own.
var capacity = []*Contender{{
	Key: "redlatch-30s", Title: "redlatch, TTL 30 s", Server: server.RedisKind, Guarded: true, Live: 30 * time.Second,
	Note: "its own driver, guard on, a TTL of 30 s",
	Open: openRedlatch(server.RedisKind, "", guarded),
}}
