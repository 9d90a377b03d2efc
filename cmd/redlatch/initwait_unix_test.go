//go:build unix

package main

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/exclusion"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/store/redis/direct"
)

// brief are cluster parameters with a quarantine of a little over ten seconds.
var brief = []string{"--max-ttl", "10s"}

// briefClient is a client with these parameters.
func briefClient(t testing.TB, servers []*servertest.Server) *redlatch.Client {
	t.Helper()
	nodes, err := direct.Nodes(servertest.Addresses(servers)...)
	must(t, err)
	c, err := redlatch.New(nodes, &redlatch.Options{Cluster: redlatch.Cluster{MaxTTL: 10 * time.Second}, NodeTimeout: 10 * time.Second})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

var hinted = regexp.MustCompile(`redlatch init(?: --[a-z-]+)*`)

// TestHintAfterALossOfAllDataLeadsToNoSecondHolder follows the error's hint word
// by word while a lock from before the loss is still valid.
func TestHintAfterALossOfAllDataLeadsToNoSecondHolder(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	declareNew(t, servers, brief...)
	first, err := briefClient(t, servers).Lock(context.Background(), "job", &redlatch.LockOptions{TTL: 10 * time.Second, NoKeepAlive: true})
	must(t, err)
	for _, s := range servers { // all lose their data
		s.Kill()
		s.Restart()
	}
	second := briefClient(t, servers)
	_, err = second.TryLock(context.Background(), "job", nil)
	if err == nil || first.Remaining() <= 0 {
		t.Fatalf("after the loss: %v, with %v left of the first lock", err, first.Remaining())
	}
	hint := strings.Fields(hinted.FindString(err.Error()))
	if len(hint) < 2 {
		t.Fatalf("no hint in: %v", err)
	}
	args := append(append(hint[1:], "--nodes", strings.Join(servertest.Addresses(servers), ",")), brief...)
	out, err := exec.Command("redlatch", args...).CombinedOutput()
	t.Logf("the hint is %q, and says:\n%s", hint, out)
	must(t, err)
	l, err := second.TryLock(context.Background(), "job", nil)
	if left := first.Remaining(); err == nil && left > 0 {
		exclusion.Never(t, "two holders: the hint was followed, and the first lock is valid for %v", left)
	}
	if err != nil {
		t.Fatalf("after init has returned: %v", err)
	}
	if l.Token() <= first.Token() {
		exclusion.Never(t, "token %d came after %d", l.Token(), first.Token())
	}
}

func TestInitWaitsWithALineNowAndThenUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		waits  bool
		stderr string
	}{
		"in words":   {nil, true, "redlatch: waiting for 3 nodes (3s left)\n"},
		"in JSON":    {[]string{"--json"}, true, `"event":"waiting","message":"waiting for 3 nodes (3s left)","left_ms":3133}` + "\n"},
		"not at all": {[]string{"--no-wait"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := servertest.Redis(t, 3)
			args := append([]string{"init", "--nodes", strings.Join(servertest.Addresses(servers), ","), "--max-ttl", "2s"}, c.args...)
			start := time.Now()
			code, stdout, stderr := command(t, args...)
			if took := time.Since(start); code != 0 || c.waits && took <= 2*time.Second {
				t.Errorf("exit %d after %v", code, took)
			}
			want := "quarantined for another " // 3s, or less by now: it did not wait
			switch {
			case name == "in JSON":
				want = `"trusted":true`
			case c.waits:
				want = "trusted; max TTL 2s"
			}
			if strings.Count(stdout, want) != 3 || !strings.HasSuffix(stderr, c.stderr) || strings.Count(stderr, "\n") != strings.Count(c.stderr, "\n") {
				t.Errorf("stdout %q, stderr %q", stdout, stderr)
			}
		})
	}
}

func TestYesIsNotEnoughWhereALockIsLeft(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3)
	these(servers...).run(t, exitUsage, "init --assume-fresh").err("pass --yes")
	for _, s := range servers {
		if marker := s.Do("GET", "redlatch:1:marker"); marker != "" {
			t.Errorf("nobody said yes, and %s is marked %q", s.Addr(), marker)
		}
	}
	// One of them was used alone, with the guard off.
	handleOf(t, servers[0].URL(), "job")
	these(servers...).run(t, exitUsage, "init --assume-fresh --yes").err("nodes are not new", "leave out --assume-fresh")
}
