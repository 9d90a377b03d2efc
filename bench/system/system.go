// Package system is the contenders: each of them opened in the same way and
// asked for the same two things, a lock and its release.
package system

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// TTL is the time to live of every lock here, whoever takes it.
const TTL = 10 * time.Second

// releaseTimeout bounds a release, on a context of its own: the clients of
// some contenders would otherwise wait for a frozen server for many seconds.
const releaseTimeout = time.Second

// A Locker takes locks for one process.
type Locker interface {
	// Lock waits for the lock until ctx ends.
	Lock(ctx context.Context, name string) (Held, error)
	// Close closes the connections.
	Close()
}

// Held is a lock that is held.
type Held interface {
	// Release returns when the contender says that the lock is released.
	Release() error
}

// Forker is implemented by a Locker of which each contender for one name needs
// its own.
type Forker interface {
	Fork() (Locker, error)
}

// heldFunc is a Held that is a function.
type heldFunc func(context.Context) error

func (f heldFunc) Release() error {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	return f(ctx)
}

// Store is what a contender keeps its locks in.
type Store string

// The stores.
const (
	Redis    Store = "redis"
	Etcd     Store = "etcd"
	Postgres Store = "postgres"
	MariaDB  Store = "mariadb"
)

// Kind is how a contender is compared.
type Kind string

// The kinds of contenders.
const (
	Ours  Kind = "ours"
	Peer  Kind = "peer"
	Floor Kind = "floor"
)

// System is a contender.
type System struct {
	// Key is its name on the command line, Title in tables.
	Key, Title string
	Kind       Kind
	Store      Store
	// Nodes are the numbers of servers it can be used with.
	Nodes []int
	// Cells are the kinds of cells it takes part in; none for all of them.
	Cells []string
	// Keeps says that it keeps its locks alive by itself.
	Keeps bool
	// Most is how many contenders it is compared with at the most; 0 for any
	// number.
	Most int
	// Batch is how many locks it takes at once; 0 for one.
	Batch int
	// Aside says that it is shown, and that the goals do not compare with it,
	// for the reason in Note.
	Aside bool
	// Direct are the commands which it sends to Redis itself, besides the
	// running of scripts and what every client sends about its connection.
	Direct []string
	// Note is what a reader of the table has to know about its settings.
	Note string
	// Open connects to the servers.
	Open func(ctx context.Context, addresses []string) (Locker, error)
}

var one, both = []int{1}, []int{1, 5}

// All are the contenders on Redis and etcd, in the order of the tables.
var All = []*System{
	{
		Key: "redlatch", Title: "redlatch", Kind: Ours, Store: Redis, Nodes: both, Keeps: true,
		Note: "its own driver, zero options but the TTL: tokens on; the restart guard on with 5 servers and off with 1, as is the default",
		Open: openRedlatch(overSockets, plainOptions),
	},
	{
		Key: "redlatch-bare", Title: "redlatch, no token, no guard", Kind: Ours, Store: Redis, Nodes: one, Keeps: true,
		Note: "its own driver, `NoToken` and `GuardOff`: what the peers promise, and no more. On one server alone: the five are marked, and a client with the guard off takes a longer way there",
		Open: openRedlatch(overSockets, bareOptions),
	},
	{
		Key: "redlatch-rueidis", Title: "redlatch over rueidis", Kind: Ours, Store: Redis, Nodes: both, Keeps: true,
		Cells: []string{"pair", "own"},
		Note:  "rueidis driver, zero options but the TTL",
		Open:  openRedlatch(overRueidis, plainOptions),
	},
	{
		Key: "redlatch-goredis", Title: "redlatch over go-redis", Kind: Ours, Store: Redis, Nodes: both, Keeps: true,
		Note: "go-redis driver, zero options but the TTL",
		Open: openRedlatch(overGoRedis, plainOptions),
	},
	{
		Key: "redsync-goredis", Title: "redsync, go-redis", Kind: Peer, Store: Redis, Nodes: both, Direct: []string{"set", "setnx"},
		Note: "redsync's default delays (random, 50 to 250 ms), tries unlimited; go-redis defaults, but set to heed contexts (`ContextTimeoutEnabled`), without which a frozen server holds it up for seconds",
		Open: openRedsync(goRedisPools),
	},
	{
		Key: "redsync-rueidis", Title: "redsync, rueidis", Kind: Peer, Store: Redis, Nodes: both, Direct: []string{"set", "setnx"},
		Note: "redsync's default delays, tries unlimited; rueidis defaults",
		Open: openRedsync(rueidisPools),
	},
	{
		Key: "redsync-failfast", Title: "redsync, rueidis, fail-fast", Kind: Peer, Store: Redis, Nodes: []int{5}, Direct: []string{"set", "setnx"},
		Cells: []string{"pair", "own", "frozen-pair", "frozen-contended", "slow-pair"}, Aside: true,
		Note: "as above, with `WithFailFast(true)`, an option that returns at a majority and does not wait for the rest; shown where that matters, but not held against in the goals: its release can overtake the lock on a server that was not waited for, and the key then stays there until it runs out",
		Open: openRedsync(rueidisPools, failFast),
	},
	{
		Key: "redislock", Title: "bsm/redislock", Kind: Peer, Store: Redis, Nodes: one,
		Note: "one server only, by its nature; `LinearBackoff(100ms)` as its example for waiting has it, tries unlimited; go-redis defaults",
		Open: openRedislock,
	},
	{
		Key: "rueidislock", Title: "rueidislock", Kind: Peer, Store: Redis, Nodes: one, Keeps: true,
		Note: "one server or one cluster only: its majority is of keys in one place, not of independent servers; `KeyMajority: 1` and `NoLoopTracking` as its README advises for one server; `TryNextAfter` 250 ms, the time that redlatch too gives a server, since with its default of 20 ms it hangs on a crowded machine",
		Open: openRueidislock,
	},
	{
		Key: "etcd", Title: "etcd concurrency", Kind: Peer, Store: Etcd, Nodes: []int{3}, Keeps: true,
		Note: "client v3 on a three-member etcd on the same machine, which writes to disk before it answers and agrees on every write: a stronger store than any Redis here; one session for each contender in contended cells, one for the process elsewhere",
		Open: openEtcd,
	},
	{
		Key: "floor-plain", Title: "floor: SET NX PX, compare and delete", Kind: Floor, Store: Redis, Nodes: both, Direct: []string{"set"},
		Cells: []string{"pair", "scripts"},
		Note:  "raw sockets, one connection a server, written to all at once and read until a majority has answered",
		Open:  openPlainFloor(1),
	},
	{
		Key: "floor-scripts", Title: "floor: redlatch's scripts", Kind: Floor, Store: Redis, Nodes: both,
		Cells: []string{"pair"},
		Note:  "raw sockets; sends what redlatch sends, with fresh values and tokens",
		Open:  openScriptFloor(1, plainOptions),
	},
	{
		Key: "floor-wakes", Title: "ideal: raw wake-ups", Kind: Floor, Store: Redis, Nodes: both, Direct: []string{"blpop", "rpush"},
		Cells: []string{"contended", "linked-contended"}, Most: 16,
		Note: "raw sockets; one token in a list of the first server (`BLPOP`, `RPUSH`), and with several servers one raw round trip to all of them: contenders are woken in the order in which they came, and nothing is promised",
		Open: openWakeFloor,
	},
	{
		Key: "floor-guarded", Title: "redlatch's scripts, guard on", Kind: Floor, Store: Redis, Nodes: both,
		Cells: []string{"scripts"},
		Note:  "as above, with the guard on for one server, too",
		Open:  openScriptFloor(1, guardedOptions),
	},
	{
		Key: "floor-plain-16", Title: "SET NX PX, compare and delete, 16 in flight", Kind: Floor, Store: Redis, Nodes: both, Direct: []string{"set"},
		Cells: []string{"scripts"}, Batch: batch,
		Note: "raw sockets; sixteen locks are asked for in one write to each server, and then released in one",
		Open: openPlainFloor(batch),
	},
	{
		Key: "floor-guarded-16", Title: "redlatch's scripts, guard on, 16 in flight", Kind: Floor, Store: Redis, Nodes: both,
		Cells: []string{"scripts"}, Batch: batch,
		Note: "the same with redlatch's scripts",
		Open: openScriptFloor(batch, guardedOptions),
	},
}

// batch is how many requests are in flight at once, where there are several.
const batch = 16

// Pairs returns how many locks it takes and releases at once.
func (s *System) Pairs() int { return max(s.Batch, 1) }

// Find returns the contender with the given key.
func Find(key string) (*System, error) {
	var keys []string
	for _, s := range slices.Concat(All, Databases) {
		if s.Key == key {
			return s, nil
		}
		keys = append(keys, s.Key)
	}
	return nil, fmt.Errorf("no system %q; there are %s", key, strings.Join(keys, ", "))
}
