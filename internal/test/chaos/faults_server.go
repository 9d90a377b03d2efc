//go:build unix

package chaos

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// serverFaults are the faults of servers and of their data.
var serverFaults = []Family{
	{Name: "kill", About: "kill -9 a server, and start it again with all that it had acknowledged; of a cluster, the leader, another member, or several", kinds: crashing, forgets: true, node: restart("comes back with its data", nil)},
	{Name: "empty", About: "kill -9 a server, and start it again without its data", kinds: redisAlone, forgets: true, node: restart("comes back empty", wipe)},
	{Name: "cut-aof", About: "start a server again from a log whose end was lost, as with the power", kinds: redisAlone, forgets: true, node: restart("comes back with its log cut short", cutLog)},
	{Name: "freeze", About: "stop a server where it is, and let it go on; of a cluster, the leader, another member, or several", kinds: crashing, node: freeze},
	{Name: "failover", About: "replace a server by a replica that lacks its last writes, while some clients are stopped; behind a sentinel, kill or freeze the master", kinds: replicated, node: failover},
	{Name: "flush-data", About: "FLUSHALL", kinds: redisAlone, forgets: true, node: orders("is flushed", "FLUSHALL", "")},
	{Name: "flush-scripts", About: "SCRIPT FLUSH", kinds: redisAlone, mild: true, node: orders("forgets its scripts", "SCRIPT FLUSH", "")},
	{Name: "full", About: "take a server's memory away, so that it refuses to write; of etcd, the space of its database", kinds: []ServerKind{Redis, Etcd}, node: orders("has no memory left, and refuses", "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")},
	{Name: "evict", About: "drop some of a server's locks and fences, as it does to make room in its memory", Beyond: true, kinds: redisAlone, node: evict},
	{Name: "compact", About: "have etcd forget former revisions, and its members defragment their files", kinds: []ServerKind{Etcd}, mild: true, node: compact},
	{Name: "expire", About: "cut a client off from ZooKeeper until its session has expired", kinds: []ServerKind{ZooKeeper}, mild: true, node: expire},
}

// restart kills a server and starts it again after its files were changed.
func restart(how string, tamper func(folder string, rng *rand.Rand) error) func(*nemesis, *node, *rand.Rand) strike {
	return func(w *nemesis, n *node, rng *rand.Rand) strike {
		if e, ok := n.current().(*ensemble); ok {
			return e.kill(w, rng)
		}
		return strike{detail: how, lasts: between(rng, 50*time.Millisecond, 1500*time.Millisecond),
			apply: func(*Fault) error { n.process().Kill(); return nil },
			heal: func(*Fault) error {
				if tamper != nil {
					if err := tamper(n.at().Dir, rng); err != nil {
						return err
					}
				}
				return again(n.current().Start)
			}}
	}
}

// orders sends a Redis server a command, and another one after a while if there
// is one.
func orders(how, command, undo string) func(*nemesis, *node, *rand.Rand) strike {
	return func(_ *nemesis, n *node, rng *rand.Rand) strike {
		if e, ok := n.current().(*ensemble); ok {
			return e.fill(rng)
		}
		order := func(command string) func(*Fault) error {
			return func(*Fault) error { return n.at().order(strings.Fields(command)...) }
		}
		s := strike{detail: how, apply: order(command)}
		if undo != "" {
			s.lasts, s.heal = between(rng, 300*time.Millisecond, 2*time.Second), order(undo)
		}
		return s
	}
}

// again tries a few times: a connection of another program may occupy a port
// for a moment.
func again(try func() error) (err error) {
	for range 10 {
		if err = try(); err == nil {
			return nil
		}
		time.Sleep(200 * time.Millisecond) // there is no event to wait for
	}
	return err
}

func wipe(folder string, _ *rand.Rand) error {
	for _, name := range []string{"appendonlydir", "appendonly.aof", "dump.rdb"} {
		if err := os.RemoveAll(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// cutLog truncates the append-only file, if there is one. A server that has
// just begun to write it loses everything.
func cutLog(folder string, rng *rand.Rand) error {
	files, err := filepath.Glob(filepath.Join(folder, "appendonlydir", "*.incr.aof"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	files = append([]string{filepath.Join(folder, "appendonly.aof")}, files...) // before Redis 7
	for _, file := range slices.Backward(files) {
		if info, err := os.Stat(file); err == nil {
			return os.Truncate(file, max(0, info.Size()-rng.Int64N(20_000)-1))
		}
	}
	return nil
}

func freeze(w *nemesis, n *node, rng *rand.Rand) strike {
	if e, ok := n.current().(*ensemble); ok {
		return e.freeze(w, rng)
	}
	return strike{detail: "is frozen", lasts: between(rng, 100*time.Millisecond, 2*w.bounds.MaxTTL),
		apply: func(*Fault) error { return n.process().Freeze() },
		heal:  func(*Fault) error { return n.process().Thaw() }}
}

// evict deletes half of the keys that expire: not the marker, without which the
// node would be quarantined.
func evict(w *nemesis, n *node, rng *rand.Rand) strike {
	return strike{detail: "drops half of its keys", apply: func(f *Fault) error {
		defer func() { f.Breaks = append(f.Breaks, Span{f.From, now()}) }()
		text, err := n.at().Ask("KEYS", "*")
		keys := slices.DeleteFunc(strings.Fields(text), func(key string) bool { return key == "redlatch:1:marker" })
		if err != nil || len(keys) == 0 {
			return err
		}
		rng.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
		return n.at().order(append([]string{"DEL"}, keys[:(len(keys)+1)/2]...)...)
	}}
}
