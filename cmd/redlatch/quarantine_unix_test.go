//go:build unix

package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// leaving is how a wait for the end of a quarantine is shown.
var leaving = regexp.MustCompile(`waiting for (\d) nodes? to leave quarantine \((\d+s) left\)`)

// TestNightlyRunAfterReboots: three servers were rebooted, one after the other,
// while no client ran. They have kept their data. The quarantine of each begins with
// the first request of the night. Who does not wait is told when it ends; who waits
// runs then.
func TestNightlyRunAfterReboots(t *testing.T) {
	t.Parallel()
	servers := servertest.Redis(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	declareNew(t, servers, brief...)
	for _, s := range servers {
		s.Kill()
		s.Restart()
	}
	on := []string{"--nodes", strings.Join(servertest.Addresses(servers), ",")}
	again := regexp.MustCompile(`try again in (\d+s), or give -w (\d+s) to wait`)
	began := time.Now()
	for _, args := range [][]string{{"run", "-n", "nightly", "--", "true"}, {"run", "-w", "0", "nightly", "--", "true"}, {"lock", "-n", "nightly"}} {
		code, _, stderr := command(t, slices.Insert(args, 1, on...)...)
		if code != exitNoQuorum || !again.MatchString(stderr) || strings.Count(stderr, "\n") != 1 {
			t.Fatalf("%q: exit %d, %s", args, code, stderr)
		}
		left, err := time.ParseDuration(again.FindStringSubmatch(stderr)[1])
		if passed := time.Since(began); err != nil || left > 11*time.Second || left+passed < 10*time.Second {
			t.Errorf("%q: %v left, %v after the first request, of 10.6s: %v", args, left, passed, err)
		}
		if wait, err := time.ParseDuration(again.FindStringSubmatch(stderr)[2]); err != nil || wait <= left {
			t.Errorf("%q: a wait of %v is too short for %v, %v", args, wait, left, err)
		}
	}
	lock, said := start(t, slices.Insert([]string{"lock", "-w", "1", "other"}, 1, on...)...)
	code, stdout, stderr := command(t, slices.Insert([]string{"run", "--json", "--once", "2026-11-17", "nightly", "--", "echo", "done"}, 1, on...)...)
	if code != 0 || stdout != "done\n" || !leaving.MatchString(stderr) || !strings.Contains(stderr, `"left_ms":`) {
		t.Errorf("run --once: exit %d after %v, %s%s", code, time.Since(began), stdout, stderr)
	}
	if code := exitCode(t, lock.Wait()); code != 0 || !leaving.MatchString(said.String()) {
		t.Errorf("lock -w: exit %d, %s", code, said)
	}
}
