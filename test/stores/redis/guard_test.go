//go:build unix

package redis_test

import (
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
var quick = redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 2 * time.Second}, NodeTimeout: time.Second}

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
	c, err := redlatch.New(open(t, addresses...), &opts)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// holdOnThree has a lease held on exactly the first three of five servers.
func holdOnThree(t testing.TB, c *redlatch.Client, servers []*servertest.Server) *redlatch.Lease {
	t.Helper()
	l := hold(t, c, servers...)
	for _, s := range servers[3:] {
		s.Do("DEL", "job")
	}
	return l
}

// forgetting is a way in which a server loses what it acknowledged.
type forgetting struct {
	settings []string
	prepare  func(t testing.TB, s *servertest.Server) // before the lock is taken
	forget   func(t testing.TB, s *servertest.Server) // after
}

var waysToForget = map[string]forgetting{
	"killed and restarted empty": {
		forget: func(t testing.TB, s *servertest.Server) {
			s.Kill()
			s.Restart()
		},
	},
	"FLUSHALL": {
		forget: func(t testing.TB, s *servertest.Server) { s.Do("FLUSHALL") },
	},
	"restarted from a stale RDB file": {
		prepare: func(t testing.TB, s *servertest.Server) { s.Do("SAVE") },
		forget: func(t testing.TB, s *servertest.Server) {
			s.Kill()
			s.Restart()
		},
	},
	// kill -9 loses nothing that was written to the file: the page cache
	// survives. Power loss does lose it, and is simulated by cutting the file.
	"AOF with its tail cut off": {
		settings: []string{"--appendonly", "yes", "--appendfsync", "everysec"},
		prepare: func(t testing.TB, s *servertest.Server) {
			os.WriteFile(filepath.Join(s.Dir(), "length"), []byte(fmt.Sprint(aofSize(t, s))), 0o600)
		},
		forget: func(t testing.TB, s *servertest.Server) {
			s.Kill()
			text, err := os.ReadFile(filepath.Join(s.Dir(), "length"))
			must(t, err)
			var length int64
			fmt.Sscan(string(text), &length)
			must(t, os.Truncate(aofFile(t, s), length))
			s.Restart("--appendonly", "yes", "--appendfsync", "everysec")
		},
	},
	"replica promoted without the last write, on the same address": {
		forget: func(t testing.TB, s *servertest.Server) {
			// It becomes the replica of a server that never saw the lock, and
			// is promoted again before any client has sent it a request: its
			// run id is unchanged.
			other := servertest.Redis(t, 1, "--repl-diskless-sync-delay", "0")[0]
			if marker := s.Do("DUMP", "redlatch:1:marker"); marker != "" {
				other.Do("RESTORE", "redlatch:1:marker", "0", marker)
			}
			host, port, _ := net.SplitHostPort(other.Addr())
			s.Do("REPLICAOF", host, port)
			eventually(t, patience, func() error {
				if !strings.Contains(s.Do("INFO", "replication"), "master_link_status:up") {
					return errors.New("not in step with its master yet")
				}
				return nil
			})
			s.Do("REPLICAOF", "NO", "ONE")
		},
	},
}

func aofFile(t testing.TB, s *servertest.Server) string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(s.Dir(), "appendonlydir", "*.incr.aof"))
	files = append(files, filepath.Join(s.Dir(), "appendonly.aof"))
	if _, err := os.Stat(files[0]); err != nil {
		t.Fatal(err)
	}
	return files[0]
}

func aofSize(t testing.TB, s *servertest.Server) int64 {
	t.Helper()
	// What was acknowledged is in the file before the reply is sent.
	info, err := os.Stat(aofFile(t, s))
	must(t, err)
	return info.Size()
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
					servers := servertest.Redis(t, 5, way.settings...)
					addresses := servertest.Addresses(servers)
					first := newClient(t, open(t, addresses...), opts)
					if err := cycle(first); err != nil { // the servers are marked
						t.Fatal(err)
					}
					eventually(t, undone, noKeys(servers))
					if way.prepare != nil {
						if !guarded {
							servers[0].Do("SET", "redlatch:1:something", "to save")
						}
						way.prepare(t, servers[0])
					}
					l := holdOnThree(t, first, servers)
					way.forget(t, servers[0])
					if servers[0].Do("GET", "job") != "" {
						t.Fatal("the server has not forgotten: this test shows nothing")
					}
					second := laterClient(t, opts, addresses...)
					l2, err := second.TryLock(context.Background(), "job", &redlatch.LockOptions{TTL: ttl})
					if l.Remaining() <= 0 {
						stall.TooLate(t, "this machine was too busy to get here within the first lease")
					}
					if !guarded {
						if err != nil {
							t.Fatalf("without the guard there should be two holders, and the second got %v", err)
						}
						return
					}
					if err == nil {
						exclusion.Never(t, "two holders: %v is left of token %d, and token %d was granted", l.Remaining(), l.Token(), l2.Token())
					}
					if !strings.Contains(fmt.Sprint(err), "quarantine") && !errors.Is(err, redlatch.ErrHeld) {
						t.Errorf("got %v", err)
					}
					// It ends by itself: when the first lease has expired and
					// the server is trusted again, the second client gets the
					// lock and a higher token.
					l2, err = second.Lock(context.Background(), "job", &redlatch.LockOptions{Wait: 30 * time.Second})
					must(t, err)
					if l2.Token() <= l.Token() {
						exclusion.Never(t, "token %d came after %d", l2.Token(), l.Token())
					}
					eventually(t, patience, func() error {
						if servers[0].Do("GET", "job") == "" {
							return errors.New("the server that forgot does not take part again")
						}
						return nil
					})
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
	eventually(t, patience, func() error {
		if replica.Do("GET", "redlatch:1:marker") == "" {
			return errors.New("the replica does not have the marker yet")
		}
		return nil
	})
	// The replica loses its master before the last write reaches it.
	replica.Do("REPLICAOF", "NO", "ONE")
	l := hold(t, c, servers...)
	servers[2].Do("DEL", "job") // the lease is held on the first two
	proxy.LeadTo(replica.Addr())
	proxy.Cut()
	second := laterClient(t, quick, addresses...)
	// The first request may not reach the promoted replica on a busy machine.
	eventually(t, patience, func() error {
		if l2, err := second.TryLock(context.Background(), "job", nil); err == nil {
			if l.Remaining() > 0 {
				exclusion.Never(t, "two holders: tokens %d and %d", l.Token(), l2.Token())
			}
			l2.Release(context.Background())
		}
		if marker := replica.Do("GET", "redlatch:1:marker"); !strings.Contains(marker, " changed ") {
			return fmt.Errorf("the promoted replica is marked %q, want it in quarantine", marker)
		}
		return nil
	})
}

func TestClientsWithAnotherMembershipAreRefused(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 4)
	a, b, c, d := servers[0].URL(), servers[1].URL(), servers[2].URL(), servers[3].URL()
	first := newClient(t, open(t, a, b, c), quick)
	l, err := first.Lock(context.Background(), "job", nil)
	must(t, err)
	eventually(t, patience, func() error {
		if servers[1].Do("GET", "job") == "" || servers[0].Do("GET", "job") == "" {
			return errors.New("not reached yet")
		}
		return nil
	})
	servers[2].Do("DEL", "job") // the lease may be held on a and b alone

	second := laterClient(t, quick, a, c, d)
	_, err = second.TryLock(context.Background(), "job", nil)
	wantErr(t, err, redlatch.ErrConfig)
	wantText(t, err, "missing "+b, "not there "+d)
	// With the guard off it is refused as well.
	_, err = laterClient(t, guardOff(quick), a, c, d).TryLock(context.Background(), "job", nil)
	wantErr(t, err, redlatch.ErrConfig)
	// With the check off there are two holders.
	unchecked := guardOff(quick)
	unchecked.AnyMembership = true
	third := laterClient(t, unchecked, a, c, d)
	eventually(t, patience, func() error { // an extension may just repair c
		servers[2].Do("DEL", "job")
		_, err := third.TryLock(context.Background(), "job", nil)
		return err
	})
	if err := l.Err(); err != nil {
		t.Errorf("with the check off, the first lease is %v", err)
	}
}

// TestChangingTheMembershipEndsOldLeasesFirst replaces one server of three.
func TestChangingTheMembershipEndsOldLeasesFirst(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 4)
	a, b, c, d := servers[0].URL(), servers[1].URL(), servers[2].URL(), servers[3].URL()
	old := newClient(t, open(t, a, b, c), quick)
	l, err := old.Lock(context.Background(), "job", &redlatch.LockOptions{Wait: patience})
	must(t, err)
	changed := laterClient(t, quick, a, b, d)
	states, err := admin.New(changed).Init(context.Background(), &admin.InitOptions{Former: open(t, a, b, c)})
	if err != nil || len(states) != 4 {
		t.Fatal(err, states)
	}
	granted := make(chan *redlatch.Lease)
	go func() {
		l, err := changed.Lock(context.Background(), "job", &redlatch.LockOptions{Wait: 5 * time.Minute})
		if err != nil {
			t.Error(err)
		}
		granted <- l
	}()
	select {
	case <-l.Context().Done():
	case <-granted:
		exclusion.Never(t, "the new membership granted while a lease of the old one stood")
	}
	wantErr(t, context.Cause(l.Context()), redlatch.ErrLost)
	if l2 := <-granted; l2 != nil && l2.Token() <= l.Token() {
		exclusion.Never(t, "token %d came after %d", l2.Token(), l.Token())
	}
	_, err = old.TryLock(context.Background(), "other", nil)
	wantErr(t, err, redlatch.ErrConfig)

	servers[0].Kill()
	servers[1].Kill()
	_, err = admin.New(changed).Init(context.Background(), &admin.InitOptions{Former: open(t, a, b, c)})
	wantErr(t, err, redlatch.ErrNoQuorum)
}

// TestRollingRestartLosesNothing restarts all three servers without their data,
// each after the previous one is trusted again.
func TestRollingRestartLosesNothing(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	addresses := servertest.Addresses(servers)
	holder := newClient(t, open(t, addresses...), quick)
	l, err := holder.Lock(context.Background(), "held throughout", nil)
	must(t, err)
	other := laterClient(t, quick, addresses...)
	var value string
	eventually(t, patience, func() error {
		if value = servers[2].Do("GET", "held throughout"); value == "" {
			return errors.New("not reached yet")
		}
		return nil
	})
	for i, s := range servers {
		s.Kill()
		s.Restart()
		eventually(t, patience, func() error {
			if err := cycle(other); err != nil {
				t.Fatalf("while server %d is being replaced: %v", i, err)
			}
			if _, err := other.TryLock(context.Background(), "held throughout", nil); !errors.Is(err, redlatch.ErrHeld) {
				t.Fatalf("while server %d is being replaced, another got %v; the lease: %v", i, err, l.Err())
			}
			if s.Do("GET", "held throughout") != value {
				return fmt.Errorf("server %d has not been given the lock again", i)
			}
			return nil
		})
		if err := l.Err(); err != nil {
			t.Fatalf("after server %d: %v", i, err)
		}
	}
	must(t, l.Release(context.Background()))
	eventually(t, undone, noKeys(servers))
}

func TestReplicaNeverGrantsThoughItCanBeWrittenTo(t *testing.T) {
	t.Parallel()
	master := servertest.Redis(t, 1)[0]
	host, port, _ := net.SplitHostPort(master.Addr())
	replica := servertest.Redis(t, 1, "--replicaof", host, port, "--replica-read-only", "no")[0]
	opts := quick
	opts.Guard = redlatch.GuardOn
	_, err := laterClient(t, opts, replica.URL()).TryLock(context.Background(), "job", nil)
	wantErr(t, err, redlatch.ErrNoQuorum)
	wantText(t, err, "READONLY")
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
