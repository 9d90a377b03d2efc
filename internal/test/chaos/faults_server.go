//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// serverFaults are the faults of servers and of their data.
func serverFaults() []Family {
	return []Family{
		{Name: "kill", About: "kill -9 a server, and start it again with all that it had acknowledged", kinds: alone, node: restart("comes back with its data", nil)},
		{Name: "empty", About: "kill -9 a server, and start it again without its data", kinds: redisAlone, node: restart("comes back empty", wipe)},
		{Name: "stale-rdb", About: "start a server again from a snapshot that lacks the last writes", kinds: redisAlone, node: staleSnapshot},
		{Name: "cut-aof", About: "start a server again from a log whose end was lost, as with the power", kinds: redisAlone, node: restart("comes back with its log cut short", cutLog)},
		{Name: "freeze", About: "stop a server where it is, and let it go on", kinds: alone, node: freeze},
		{Name: "promote", About: "replace a server by a replica that lacks its last writes", kinds: alone, node: promote},
		{Name: "failover", About: "the same while some clients are stopped; behind a sentinel, kill or freeze the master", node: failover},
		{Name: "flush-data", About: "FLUSHALL", kinds: redisAlone, node: flushData},
		{Name: "flush-scripts", About: "SCRIPT FLUSH", kinds: redisAlone, mild: true, node: flushScripts},
	}
}

// restart kills a server and starts it again after its files were changed.
func restart(how string, tamper func(s redisServer, rng *rand.Rand) error) func(*world, *node, *rand.Rand) strike {
	return func(w *world, n *node, rng *rand.Rand) strike {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0)) // healing runs on a goroutine of its own
		return strike{detail: how, lasts: between(rng, 50*time.Millisecond, 1500*time.Millisecond), quarantine: w.quarantine(n),
			apply: func(*Fault) error { n.process().Kill(); return nil },
			heal: func(*Fault) error {
				if tamper != nil {
					if err := tamper(n.at(), own); err != nil {
						return err
					}
				}
				return again(n.current().Start)
			}}
	}
}

// quarantine returns how long a node is quarantined after a restart. A database keeps
// what it has committed, and so is not.
func (w *world) quarantine(n *node) time.Duration {
	if n.kind != Redis {
		return 0
	}
	return w.bounds.quarantine()
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

func wipe(s redisServer, _ *rand.Rand) error {
	for _, path := range dataFiles(s) {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

func dataFiles(s redisServer) []string {
	return []string{filepath.Join(s.Dir, "appendonlydir"), filepath.Join(s.Dir, "appendonly.aof"), filepath.Join(s.Dir, "dump.rdb")}
}

// cutLog truncates the append-only file, if there is one. A server that has
// just begun to write it loses everything.
func cutLog(s redisServer, rng *rand.Rand) error {
	files, err := filepath.Glob(filepath.Join(s.Dir, "appendonlydir", "*.incr.aof"))
	if err != nil {
		return err
	}
	files = append(files, filepath.Join(s.Dir, "appendonly.aof")) // before Redis 7
	var newest os.FileInfo
	var path string
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && (newest == nil || info.ModTime().After(newest.ModTime())) {
			newest, path = info, file
		}
	}
	if newest == nil {
		return nil
	}
	return os.Truncate(path, max(0, newest.Size()-rng.Int64N(20_000)-1))
}

// staleSnapshot saves a server's data, lets it run for a while, and restarts it
// from the saved data.
func staleSnapshot(w *world, n *node, rng *rand.Rand) strike {
	return strike{detail: "comes back from a stale snapshot", lasts: between(rng, 200*time.Millisecond, 1500*time.Millisecond), quarantine: w.bounds.quarantine(),
		apply: func(*Fault) error {
			// The server may be saving for a replica of its own now.
			return again(func() error { _, err := n.at().Ask("SAVE"); return err })
		},
		heal: func(*Fault) error {
			s := n.at()
			s.Kill()
			for _, path := range dataFiles(s)[:2] {
				if err := os.RemoveAll(path); err != nil {
					return err
				}
			}
			// With a log enabled, the server would read that instead of the
			// snapshot.
			if err := again(func() error { return s.Server.Start("--repl-diskless-sync-delay", "0") }); err != nil {
				return err
			}
			_, err := s.Ask("CONFIG", "SET", "appendonly", "yes")
			return err
		}}
}

func freeze(w *world, n *node, rng *rand.Rand) strike {
	return strike{detail: "is frozen", lasts: between(rng, 100*time.Millisecond, 2*w.bounds.MaxTTL),
		apply: func(*Fault) error { return n.process().Freeze() },
		heal:  func(*Fault) error { return n.process().Thaw() }}
}

func flushData(w *world, n *node, rng *rand.Rand) strike {
	return strike{detail: "is flushed", quarantine: w.bounds.quarantine(),
		apply: func(*Fault) error { _, err := n.at().Ask("FLUSHALL"); return err }}
}

func flushScripts(w *world, n *node, rng *rand.Rand) strike {
	return strike{detail: "forgets its scripts",
		apply: func(*Fault) error { _, err := n.at().Ask("SCRIPT", "FLUSH"); return err }}
}

// promote gives a server a replica, promotes the replica, and leaves the
// clients with the old master for a while: what they write then is lost when
// the node's address leads to the new master.
func promote(w *world, n *node, rng *rand.Rand) strike {
	lag := between(rng, 50*time.Millisecond, 600*time.Millisecond)
	return strike{detail: fmt.Sprintf("is replaced by a replica that lacks the last %v", lag.Round(time.Millisecond)), quarantine: w.bounds.quarantine(),
		apply: func(*Fault) error {
			return n.promote(func() {}, lag)
		}}
}

// promote replaces the node's server by a replica. It calls before when the replica
// has all that the server has. After the promotion, clients write to the old server
// for lag; then the node's address leads to the new one.
func (n *node) promote(before func(), lag time.Duration) error {
	if _, ok := n.current().(*servertest.Database); ok {
		return n.promoteDatabase(before, lag)
	}
	old := n.at()
	replica, err := n.newRedis()
	if err != nil {
		return err
	}
	if err := replica.Server.Start(append(durable(), "--replicaof", "127.0.0.1", fmt.Sprint(old.Port))...); err != nil {
		return err
	}
	if err := awaitSync(replica); err != nil {
		replica.Kill()
		return err
	}
	before()
	if _, err := replica.Ask("REPLICAOF", "NO", "ONE"); err != nil {
		replica.Kill()
		return err
	}
	time.Sleep(lag) // the fault itself
	n.become(replica)
	old.Kill()
	return os.RemoveAll(old.Dir)
}

func awaitSync(replica redisServer) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		text, err := replica.Ask("INFO", "replication")
		if err == nil && strings.Contains(text, "master_link_status:up") {
			return nil
		}
		time.Sleep(5 * time.Millisecond) // there is no event to wait for
	}
	return fmt.Errorf("the replica on port %d is not in step with its master", replica.Port)
}
