//go:build unix

package redis_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
	"github.com/redlatch/redlatch/store/redis/rueidis"
)

// quick are cluster parameters with a quarantine that a test can wait for: a
// little over 2 s.
var quick = redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 2 * time.Second}, NodeTimeout: patient}

func guardOff(opts redlatch.Options) redlatch.Options {
	opts.Guard = redlatch.GuardOff
	return opts
}

func open(t testing.TB, addresses ...string) []redlatch.Node {
	t.Helper()
	nodes, err := rueidis.Nodes(addresses...)
	must(t, err)
	return nodes
}

// laterClient returns a client that does not assume that the servers are new.
func laterClient(t testing.TB, opts redlatch.Options, addresses ...string) *redlatch.Client {
	t.Helper()
	opts.NodeTimeout = cmp.Or(opts.NodeTimeout, patient)
	c, err := redlatch.New(open(t, addresses...), &opts)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// waysToForget are the ways in which a server loses what it acknowledged. Each is
// called before the lock is taken, and what it returns after that.
var waysToForget = map[string]func(t testing.TB, s *servertest.Server) (forget func()){
	"killed and restarted empty": func(_ testing.TB, s *servertest.Server) func() {
		return func() {
			s.Kill()
			s.Restart()
		}
	},
	"FLUSHALL": func(_ testing.TB, s *servertest.Server) func() {
		return func() { s.Do("FLUSHALL") }
	},
	"restarted from a stale RDB file": func(_ testing.TB, s *servertest.Server) func() {
		s.Do("SAVE")
		return func() {
			s.Kill()
			s.Restart()
		}
	},
	// kill -9 loses nothing that was written to the file: the page cache
	// survives. Power loss does lose it, and is simulated by cutting the file.
	"AOF with its tail cut off": func(t testing.TB, s *servertest.Server) func() {
		// What is acknowledged is in the file before the reply is sent.
		s.Do("CONFIG", "SET", "appendonly", "yes")
		var file string
		var info os.FileInfo
		eventually(t, patience, func() (err error) { // the server writes all that it has first
			files, _ := filepath.Glob(filepath.Join(s.Dir(), "appendonlydir", "*.incr.aof"))
			file = append(files, filepath.Join(s.Dir(), "appendonly.aof"))[0]
			if text := s.Do("INFO", "persistence"); !strings.Contains(text, "aof_rewrite_in_progress:0") || !strings.Contains(text, "aof_rewrite_scheduled:0") {
				return errors.New("the file is being written")
			}
			info, err = os.Stat(file)
			return err
		})
		return func() {
			s.Kill()
			must(t, os.Truncate(file, info.Size()))
			s.Restart("--appendonly", "yes")
		}
	},
	"replica promoted without the last write, on the same address": func(t testing.TB, s *servertest.Server) func() {
		// It becomes the replica of a server that never saw the lock, and is
		// promoted again before any client has sent it a request: its run id is
		// unchanged.
		return func() {
			other := servertest.Redis(t, 1, "--repl-diskless-sync-delay", "0")[0]
			if marker := s.Do("DUMP", "redlatch:1:marker"); marker != "" {
				other.Do("RESTORE", "redlatch:1:marker", "0", marker)
			}
			follow(t, s, other)
			s.Do("REPLICAOF", "NO", "ONE")
		}
	},
}

// follow makes a server the replica of another, and waits until it has all data.
func follow(t testing.TB, replica, master *servertest.Server) {
	t.Helper()
	host, port, _ := net.SplitHostPort(master.Addr())
	replica.Do("REPLICAOF", host, port)
	inStep(t, replica)
}

// inStep waits until a replica has all data of its master.
func inStep(t testing.TB, replica *servertest.Server) {
	t.Helper()
	eventually(t, patience, func() error {
		if !strings.Contains(replica.Do("INFO", "replication"), "master_link_status:up") {
			return errors.New("the replica is not in step with its master yet")
		}
		return nil
	})
}

// TestForgetfulServerDoesNotLetASecondHolderIn has a lease held on exactly
// three of five servers, and one of those forget it. With the guard off the
// same run shows two holders, so this test can fail.
func TestForgetfulServerDoesNotLetASecondHolderIn(t *testing.T) {
	const ttl = 8 * time.Second
	for name, way := range waysToForget {
		for _, guarded := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, guard %v", name, guarded), func(t *testing.T) {
				t.Parallel()
				timed(t, func(t testing.TB) {
					// Long enough for a busy machine to restart a server in.
					opts := redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: ttl}, NodeTimeout: 5 * time.Second}
					if !guarded {
						opts = guardOff(opts)
					}
					servers := servertest.Redis(t, 5)
					addresses := servertest.Addresses(servers)
					first := newClient(t, open(t, addresses...), opts)
					must(t, cycle(first)) // the servers are marked
					eventually(t, undone, noKeys(servers))
					servers[0].Do("SET", "redlatch:1:something", "to save")
					forget := way(t, servers[0])
					l := hold(t, first, servers...)
					for _, s := range servers[3:] {
						s.Do("DEL", "job")
					}
					forget()
					if servers[0].Do("GET", "job") != "" {
						t.Fatal("the server has not forgotten: this test shows nothing")
					}
					l2, err := laterClient(t, opts, addresses...).TryLock(context.Background(), "job", nil)
					if l.Remaining() <= 0 {
						stall.TooLate(t, "this machine was too busy to get here within the first lease")
					}
					switch {
					case !guarded && err != nil:
						t.Errorf("without the guard there should be two holders, and the second got %v", err)
					case guarded && err == nil:
						exclusion.Never(t, "two holders: %v is left of token %d, and token %d was granted", l.Remaining(), l.Token(), l2.Token())
					case guarded && !strings.Contains(err.Error(), "quarantine") && !errors.Is(err, redlatch.ErrHeld):
						t.Errorf("got %v", err)
					}
				})
			})
		}
	}
}

func TestPromotedReplicaBehindOneAddressIsNotTrusted(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	replica := replicaOf(t, servers[0], 1)[0]
	awaitReplicas(t, servers[0], 1)
	proxy := servertest.NewProxy(t, servers[0])
	addresses := append([]string{proxy.URL()}, servertest.Addresses(servers[1:])...)
	c := newClient(t, open(t, addresses...), quick)
	must(t, cycle(c))
	marked := func(want string) {
		t.Helper()
		eventually(t, patience, func() error {
			if marker := replica.Do("GET", "redlatch:1:marker"); !strings.Contains(marker, want) {
				return fmt.Errorf("the replica is marked %q, want %q", marker, want)
			}
			return nil
		})
	}
	marked(" member ") // it has what its master has
	// The replica loses its master before the last write reaches it.
	replica.Do("REPLICAOF", "NO", "ONE")
	l := hold(t, c, servers...)
	servers[2].Do("DEL", "job") // the lease is held on the first two
	proxy.LeadTo(replica.Addr())
	proxy.Cut()
	// The first request may not reach the promoted replica on a busy machine.
	wantNoSecond(t, laterClient(t, quick, addresses...), l)
	marked(" changed ")
}

func TestClientsWithAnotherMembershipAreRefused(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 4)
	a, b, c, d := servers[0].URL(), servers[1].URL(), servers[2].URL(), servers[3].URL()
	l := hold(t, newClient(t, open(t, a, b, c), redlatch.Options{}), servers[:3]...)
	servers[2].Do("DEL", "job") // the lease may be held on a and b alone
	second := func(opts redlatch.Options) error {
		_, err := laterClient(t, opts, a, c, d).TryLock(context.Background(), "job", nil)
		return err
	}
	for _, opts := range []redlatch.Options{{}, guardOff(redlatch.Options{})} {
		err := second(opts)
		wantErr(t, err, redlatch.ErrConfig)
		wantText(t, err, "this client lacks "+b, "the servers do not know "+d)
	}
	// With the check off there are two holders.
	unchecked := guardOff(redlatch.Options{})
	unchecked.AnyMembership = true
	must(t, second(unchecked))
	must(t, l.Err())
}

func TestGuardFailsClosedWhereINFOIsForbidden(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t, 1)[0]
	server.Do("ACL", "SETUSER", "locker", "on", ">pw", "~*", "&*", "+@all", "-info")
	opts := quick
	opts.Guard = redlatch.GuardOn
	address := strings.Replace(server.URL(), "redis://", "redis://locker:pw@", 1)
	_, err := laterClient(t, opts, address).TryLock(context.Background(), "job", nil)
	wantErr(t, err, redlatch.ErrNoQuorum)
	if !strings.Contains(err.Error(), "NOINFO") || !strings.Contains(err.Error(), "switch the guard off") {
		t.Errorf("%v does not say what to do", err)
	}
	if err := cycle(laterClient(t, guardOff(quick), address)); err != nil {
		t.Errorf("with the guard off: %v", err)
	}
}

func TestClusterCanBeGuarded(t *testing.T) {
	t.Parallel()
	timed(t, func(t testing.TB) {
		servers := startCluster(t)
		hosts := servertest.Hosts(servers)
		// Init must come before the end of the quarantine that TryLock began.
		opts := redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 12 * time.Second}, NodeTimeout: 10 * time.Second}
		opts.Guard = redlatch.GuardOn
		c := laterClient(t, opts, "redis+cluster://"+strings.Join(hosts, "+"))
		_, err := c.TryLock(context.Background(), "job", nil)
		wantErr(t, err, redlatch.ErrQuarantine)
		start := time.Now()
		if _, err := admin.New(c).Init(context.Background(), &admin.InitOptions{AssumeFresh: true}); err != nil {
			stall.In(t, opts.NodeTimeout/2, start) // it marks 16,384 slots
			t.Fatal(err)
		}
		for _, name := range []string{"job", "a}b", "{}x", "{a}"} {
			if l, err := c.TryLock(context.Background(), name, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			} else {
				l.Release(context.Background())
			}
		}
		// Each slot that forgot is marked again when it is used.
		for _, s := range servers {
			s.Do("FLUSHALL")
		}
		for _, name := range []string{"job", "a}b"} {
			_, err := c.TryLock(context.Background(), name, nil)
			wantErr(t, err, redlatch.ErrQuarantine)
		}
	})
}

func wantText(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, want := range parts {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
