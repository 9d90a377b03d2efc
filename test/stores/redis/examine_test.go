//go:build unix

package redis_test

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/node/risk"
)

// examine returns what an examination of servers finds that is not fine, as
// "severity check", and all of it.
func examine(t testing.TB, nodes []redlatch.Node, opts redlatch.Options, name string) ([]string, *admin.Checkup) {
	t.Helper()
	defer func() {
		for _, n := range nodes {
			n.Close()
		}
	}()
	opts.NodeTimeout = cmp.Or(opts.NodeTimeout, patient)
	up, err := admin.Examine(context.Background(), nodes, &opts, &admin.ExamineOptions{Name: name, Samples: 5})
	must(t, err)
	var found []string
	for _, f := range up.Findings {
		if f.Found == "" || f.Severity > risk.Fine && (f.Means == "" || f.Do == "") {
			t.Errorf("a finding does not say what it means and what to do: %+v", f)
		}
		// How fast this machine is now is tested elsewhere.
		if f.Severity > risk.Fine && f.Check != "times" {
			found = append(found, f.Severity.String()+" "+f.Check)
		}
	}
	return found, up
}

func TestExaminationFindsWhatEndangersLocks(t *testing.T) {
	t.Parallel()
	master := servertest.Redis(t, 1)[0]
	host, port, _ := net.SplitHostPort(master.Addr())
	for _, c := range []struct {
		name     string
		settings []string
		guard    redlatch.GuardMode
		want     []string
	}{
		{"kept with every write", []string{"--appendonly", "yes", "--appendfsync", "always"}, redlatch.GuardOff, nil},
		{"kept every second", []string{"--appendonly", "yes", "--appendfsync", "everysec"}, redlatch.GuardOff, []string{"warning persistence"}},
		{"kept now and then", []string{"--save", "60", "1"}, redlatch.GuardOff, []string{"danger persistence"}},
		{"not kept", nil, redlatch.GuardOff, []string{"danger persistence"}},
		{"not kept, guarded", nil, redlatch.GuardOn, []string{"danger marker", "warning marker"}},
		{"evicting", []string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, redlatch.GuardOn, []string{"danger marker", "danger eviction", "warning marker"}},
		{"evicting some day", []string{"--maxmemory-policy", "volatile-ttl"}, redlatch.GuardOn, []string{"danger marker", "warning marker", "advice eviction"}},
		{"nearly full", nil, redlatch.GuardOn, []string{"danger marker", "warning marker", "warning memory"}},
		{"a replica", []string{"--replicaof", host, port}, redlatch.GuardOff, []string{"danger rights", "danger role", "danger persistence"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := servertest.Redis(t, 1, c.settings...)[0]
			if c.name == "nearly full" {
				server.Do("SETRANGE", "pad", "50000000", "x") // so large that the memory of a connection does not matter
				_, used, _ := strings.Cut(server.Do("INFO", "memory"), "used_memory:")
				used, _, _ = strings.Cut(used, "\r")
				n, _ := strconv.Atoi(used)
				server.Do("CONFIG", "SET", "maxmemory", strconv.Itoa(n*100/93))
			}
			if c.name == "a replica" {
				inStep(t, server)
			}
			eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
				found, up := examine(t, nodes(server.URL()), redlatch.Options{Guard: c.guard}, "")
				found = slices.DeleteFunc(found, func(s string) bool { return s == "advice quorum" })
				if !slices.Equal(found, c.want) {
					t.Errorf("found is %q, want %q: %+v", found, c.want, up.Findings)
				}
			})
		})
	}
}

func TestExaminationLeavesNothingAndDisturbsNobody(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		for _, s := range servers {
			s.Do("FLUSHALL")
		}
		urls := servertest.Addresses(servers)
		c := newClient(t, nodes(urls...), redlatch.Options{})
		lease, err := c.Lock(context.Background(), "redlatch-doctor", nil)
		must(t, err)
		found, up := examine(t, nodes(urls...), redlatch.Options{}, "redlatch-doctor")
		if len(found) > 0 || up.Answered != 3 {
			t.Errorf("found is %q", found)
		}
		if up.TTL < time.Second || up.NodeTimeout <= 0 || up.NodeTimeout > up.TTL/10 || up.Nodes[0].Median <= 0 || up.Nodes[0].P99 < up.Nodes[0].Median {
			t.Errorf("the times are %v, %v, %+v", up.TTL, up.NodeTimeout, up.Nodes)
		}
		for _, s := range servers {
			if keys := s.Keys(); len(keys) > 1 || s.Do("EXISTS", "redlatch:1:marker") != "1" {
				t.Errorf("the keys are %q", keys)
			}
			for key := range strings.SplitSeq(s.Do("KEYS", "redlatch:1:*"), "\n") {
				if left, _ := strconv.Atoi(s.Do("PTTL", key)); strings.Contains(key, "doctor/") && (left > 5000 || left == -1) {
					t.Errorf("%s is left for %d ms", key, left)
				}
			}
		}
		if err := lease.Extend(context.Background()); err != nil {
			t.Errorf("the holder: %v", err)
		}
	})
	// Examining nodes does not mark them.
	for _, s := range servers {
		s.Do("FLUSHALL")
	}
	examine(t, nodesOf(drivers["rueidis"](servertest.Addresses(servers)...)), redlatch.Options{}, "")
	if servers[0].Do("EXISTS", "redlatch:1:marker") != "0" {
		t.Error("the examination marked a node")
	}
}

func nodesOf(nodes []redlatch.Node, err error) []redlatch.Node {
	if err != nil {
		panic(err)
	}
	return nodes
}

func TestExaminationOfAMembershipFindsWhatIsWrongWithIt(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	a, b := servers[0].URL(), servers[1].URL()
	port := a[strings.LastIndex(a, ":"):]
	eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
		off := redlatch.Options{Guard: redlatch.GuardOff}
		found, _ := examine(t, nodes(a, "redis://localhost"+port, b), off, "")
		if !slices.Contains(found, "danger identity") {
			t.Errorf("a server listed twice: %q", found)
		}
		found, up := examine(t, nodes(a, "redis://127.0.0.1:1", b), off, "")
		if !slices.Contains(found, "warning quorum") || !slices.Contains(found, "warning reach") || up.Answered != 2 {
			t.Errorf("one is away: %q", found)
		}
		found, up = examine(t, nodes(a, "redis://127.0.0.1:1", "redis://127.0.0.1:2"), off, "")
		if !slices.Contains(found, "danger quorum") || up.Answered != 1 || up.Need != 2 {
			t.Errorf("two are away: %q", found)
		}
		if found, _ = examine(t, nodes(a, b), off, ""); !slices.Contains(found, "advice quorum") {
			t.Errorf("an even number: %q", found)
		}
	})
	for _, s := range servers {
		s.Do("FLUSHALL")
	}
	// Marked for one membership, and asked by a client of another.
	must(t, fresh.Declare(t.Context(), newClient(t, nodesOf(drivers["rueidis"](servertest.Addresses(servers)...)), redlatch.Options{})))
	found, _ := examine(t, nodesOf(drivers["rueidis"](a, b)), redlatch.Options{}, "")
	if !slices.Contains(found, "danger marker") {
		t.Errorf("another membership: %q", found)
	}
	servers[1].Do("FLUSHALL")
	found, _ = examine(t, nodesOf(drivers["rueidis"](servertest.Addresses(servers)...)), redlatch.Options{}, "")
	if !slices.Equal(found, []string{"warning marker"}) {
		t.Errorf("a node was flushed: %q", found)
	}
}

func TestExaminationTriesTheRightsOfTheUser(t *testing.T) {
	t.Parallel()
	const all = "reset on >pw resetchannels &redlatch:1:inbox:* ~orders/* ~redlatch:1:* +eval +evalsha +time +get +mget +set +del +exists +pexpire +pttl +type +zadd +zrange +zrank +zrem +zscore +publish +subscribe +info +client|setname +ping +select +scan +hello"
	for _, c := range []struct {
		name, without, probe string
		want                 string
	}{
		{"all that a lock needs", "", "orders/x", ""},
		{"a name out of bounds", "", "other", "danger rights"},
		{"no extension", "+pexpire ", "orders/x", "danger rights"},
		{"no queue", "+zadd ", "orders/x", "danger rights"},
		{"no channel", "&redlatch:1:inbox:* ", "orders/x", "warning wakes"},
		{"no listening", "+subscribe ", "orders/x", "warning wakes"},
		{"no telling", "+publish ", "orders/x", "warning wakes"},
		{"no listing", "+scan ", "orders/x", "advice rights"},
		{"no INFO", "+info ", "orders/x", "warning info"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := servertest.Redis(t, 1, "--appendonly", "yes", "--appendfsync", "always")[0]
			server.Do(append([]string{"ACL", "SETUSER", "locks"}, strings.Fields(strings.Replace(all, c.without, "", 1))...)...)
			eachDriver(t, func(t *testing.T, nodes func(...string) []redlatch.Node) {
				address := (&url.URL{Scheme: "redis", User: url.UserPassword("locks", "pw"), Host: server.Addr()}).String()
				found, up := examine(t, nodes(address), redlatch.Options{}, c.probe)
				if c.want == "" {
					// CONFIG is not among the rights, so how often the server
					// saves is unknown.
					if !slices.Equal(found, []string{"warning persistence", "advice quorum"}) {
						t.Errorf("found is %q: %+v", found, up.Findings)
					}
				} else if !slices.Contains(found, c.want) {
					t.Errorf("found is %q, want %q: %+v", found, c.want, up.Findings)
				}
			})
		})
	}
}
