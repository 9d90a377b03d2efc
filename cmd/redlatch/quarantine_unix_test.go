//go:build unix

package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// leaving is how a wait for the end of a quarantine is shown.
var leaving = regexp.MustCompile(`waiting for (\d) nodes? to leave quarantine \((\d+s) left\)`)

// rebooted starts three servers with a quarantine of a little over ten seconds,
// and reboots them one after the other while no client runs. They keep their
// data.
func rebooted(t *testing.T) string {
	t.Helper()
	servers := servertest.Redis(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	declareNew(t, servers, brief...)
	for _, s := range servers {
		s.Kill()
		s.Restart()
	}
	return strings.Join(servertest.Addresses(servers), ",")
}

// TestNightlyRunAfterReboots: the quarantine of each server begins with the
// first request of the night.
func TestNightlyRunAfterReboots(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"once":             {"run", "--json", "--once", "2026-11-17"},
		"lock with a wait": {"lock", "-w", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(args, "--nodes", rebooted(t), "nightly")
			if args[0] == "run" {
				args = append(args, "--", "echo", "REDLATCH_done")
			}
			start := time.Now()
			code, stdout, stderr := command(t, args...)
			if code != 0 || !strings.Contains(stdout, "REDLATCH_") || !leaving.MatchString(stderr) {
				t.Errorf("exit %d after %v, %s%s", code, time.Since(start), stdout, stderr)
			}
			if name == "once" && !strings.Contains(stderr, `"left_ms":`) {
				t.Errorf("no left_ms in %s", stderr)
			}
		})
	}
}

func TestNoWaitSaysWhenTheQuarantineEnds(t *testing.T) {
	t.Parallel()
	nodes := rebooted(t)
	again := regexp.MustCompile(`try again in (\d+s), or give -w (\d+s) to wait`)
	start := time.Now()
	for _, args := range [][]string{{"run", "-n"}, {"run", "-w", "0"}, {"lock", "-n"}} {
		args = append(args, "--nodes", nodes, "nightly")
		if args[0] == "run" {
			args = append(args, "--", "true")
		}
		code, _, stderr := command(t, args...)
		if code != exitNoQuorum || !again.MatchString(stderr) || strings.Count(stderr, "\n") != 1 {
			t.Fatalf("%q: exit %d, %s", args, code, stderr)
		}
		left, err := time.ParseDuration(again.FindStringSubmatch(stderr)[1])
		if passed := time.Since(start); err != nil || left > 11*time.Second || left+passed < 10*time.Second {
			t.Errorf("%q: %v left, %v after the first request, of 10.6s: %v", args, left, passed, err)
		}
		if wait, err := time.ParseDuration(again.FindStringSubmatch(stderr)[2]); err != nil || wait <= left {
			t.Errorf("%q: a wait of %v is too short for %v, %v", args, wait, left, err)
		}
	}
}
