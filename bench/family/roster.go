package family

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/redlatch/redlatch/bench/system"
)

// The two situations.
const (
	Slots   = "slots"
	Readers = "readers"
)

const (
	// contenders is how many want the lock, slots how many may hold one of a
	// situation's slots, writeEvery which of a contender's requests is a
	// writer's: one of so many.
	contenders = 16
	slots      = 3
	writeEvery = 10
	// held is how long the lock is held each time.
	held = time.Millisecond
)

// Peer is a row of the tables.
type Peer struct {
	// Key is the contender in its process's Config, Title in tables.
	Key, Title string
	// Nodes is how many servers it uses.
	Nodes     int
	Situation string
	// Ours says that a fault of it is one of this project.
	Ours bool
	// Runtime runs a driver that is not this program: "node" or "java".
	Runtime string
	// Direct are the commands that it sends itself, besides scripts.
	Direct []string
	// AsOften are commands that it sends itself and that its scripts run, too:
	// as many of them are sent as there are of another, which is run by scripts
	// alone.
	AsOften map[string]string
	// Note is what a reader has to know about its settings.
	Note string
}

// ID names the row on the command line.
func (p Peer) ID() string { return fmt.Sprintf("%s/%d/%s", p.Situation, p.Nodes, p.Key) }

// Peers are the rows in the order of the tables.
var Peers = slices.Concat(
	both(Slots, Peer{Key: "redlatch", Title: "redlatch", Ours: true, Note: "`LockOptions{Slots: 3}`, rueidis driver, zero options but the TTL: in the order of arrival, with tokens, and with the restart guard on three servers"}),
	[]Peer{{Key: "redlatch-bare", Title: "redlatch, no token, no guard", Nodes: 1, Situation: Slots, Ours: true, Note: "the same with `NoToken` and `GuardOff`, which slots on several servers do not allow"}},
	both(Slots, Peer{Key: "redlatch-barge", Title: "redlatch, Barge", Ours: true, Note: "the same as redlatch with `Barge`: in no order, as with all the peers here"}),
	both(Slots, Peer{Key: "redsync-names", Title: "redsync, a name for each slot", Direct: []string{"set", "setnx"}, Note: "redsync has no slots: three names, tried in turn from a random one on, and redsync's own delay of 50 to 250 ms when all were taken; rueidis"}),
	[]Peer{
		{Key: "semaphore", Title: "redis-semaphore, Semaphore", Nodes: 1, Situation: Slots, Runtime: "node", Direct: []string{"zrem"}, Note: "npm; default options: it asks every 10 ms"},
		{Key: "semaphore", Title: "redis-semaphore, RedlockSemaphore", Nodes: 3, Situation: Slots, Runtime: "node", Direct: []string{"zrem"}, Note: "npm; default options: it asks every 10 ms"},
		{Key: "redisson-semaphore", Title: "Redisson, RSemaphore", Nodes: 1, Situation: Slots, Runtime: "java", Note: "notified by a message; permits have no time to live: those of a process that ends without releasing are lost"},
		{Key: "redisson-permits", Title: "Redisson, RPermitExpirableSemaphore", Nodes: 1, Situation: Slots, Runtime: "java", Note: "notified by a message; permits have a time to live, and nothing extends them by itself"},
	},
	both(Readers, Peer{Key: "redlatch", Title: "redlatch", Ours: true, Note: "`LockOptions{Shared: true}` for readers, rueidis driver, zero options but the TTL: in the order of arrival, with tokens, and with the restart guard on three servers"}),
	both(Readers, Peer{Key: "redlatch-bare", Title: "redlatch, no token, no guard", Ours: true, Note: "the same with `NoToken` and `GuardOff`"}),
	both(Readers, Peer{Key: "redlatch-barge", Title: "redlatch, Barge", Ours: true, Note: "the same as redlatch with `Barge`: in no order"}),
	[]Peer{
		{Key: "redisson-readers", Title: "Redisson, RReadWriteLock", Nodes: 1, Situation: Readers, Runtime: "java", AsOften: unlocks, Note: "kept by its watchdog, notified by a message; in no order"},
		{Key: "redisson-readers", Title: "Redisson, RedissonRedLock of them", Nodes: 3, Situation: Readers, Runtime: "java", AsOften: unlocks, Note: "a read or a write lock on each server, in `RedissonRedLock`, which its authors advise against; it is the only way to more than one server"},
	},
)

// unlocks are what a Redisson lock sends when it is released: a script, which
// reads a key and may delete some, and the deletion of that key.
var unlocks = map[string]string{"del": "get"}

// both is a row on one server and one on three.
func both(situation string, p Peer) []Peer {
	p.Situation = situation
	one, three := p, p
	one.Nodes, three.Nodes = 1, 3
	return []Peer{one, three}
}

// configs are the processes of a row: one for each contender, except that those
// in Java are threads of one process.
func (p Peer) configs(addresses []string) []Config {
	c := Config{Peer: p.Key, Addresses: addresses, HeldMS: int(held.Milliseconds()), TTLMS: int(system.TTL.Milliseconds())}
	if c.Limit = p.Limit(); c.Limit == 0 {
		c.WriteEvery = writeEvery
	}
	if p.Runtime == "java" {
		c.Contenders = contenders
		return []Config{c}
	}
	all := make([]Config, contenders)
	for i := range all {
		all[i] = c
		all[i].Contenders, all[i].First = 1, int32(i)
	}
	return all
}

// sent returns how many commands the row's clients sent.
func (p Peer) sent(commands map[string]int64) int64 {
	sent := (&system.System{Store: system.Redis, Direct: p.Direct}).Sent(commands)
	for _, other := range p.AsOften {
		sent += commands[other]
	}
	return sent
}

// command is the program of a row's contenders and its environment, in the
// folder of this module.
func (p Peer) command(module string) (args, env []string, err error) {
	deps := filepath.Join(module, ".deps")
	var needs string
	switch p.Runtime {
	case "":
		self, err := os.Executable()
		return []string{self, Argument}, nil, err
	case "node":
		needs = filepath.Join(deps, "node", "node_modules")
		args, env = []string{"node", filepath.Join(module, "peers", "node", "contend.js")}, []string{"NODE_PATH=" + needs}
	case "java":
		needs = filepath.Join(deps, "java", "classes")
		args = []string{"java", "-cp", needs + ":" + filepath.Join(deps, "java", "lib", "*"), "Contend"}
	}
	if _, err := os.Stat(needs); err != nil {
		return nil, nil, fmt.Errorf("%s is not installed: peers/install.sh does that: %w", p.Title, err)
	}
	return args, env, nil
}

// Limit returns how many may hold a lock of the row at once; 0 for readers and
// writers.
func (p Peer) Limit() int {
	if p.Situation == Slots {
		return slots
	}
	return 0
}
