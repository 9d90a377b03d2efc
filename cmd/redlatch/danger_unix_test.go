//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestWhatEndangersLocksIsPrinted has a server that may evict locks. A run says so in
// every form, with -q too.
func TestWhatEndangersLocksIsPrinted(t *testing.T) {
	t.Parallel()
	s := servertest.Redis(t, 1)[0]
	run := func(args ...string) string {
		t.Helper()
		code, _, stderr := command(t, append(append([]string{"run", "--nodes", s.URL()}, args...), "job", "--", "true")...)
		if code != 0 {
			t.Fatalf("exit %d, %s", code, stderr)
		}
		return stderr
	}
	if stderr := run(); stderr != "" {
		t.Errorf("without a danger it prints %s", stderr)
	}
	s.Do("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "volatile-lru")
	const danger = ": the server may evict keys (maxmemory-policy volatile-lru), and with them locks: set maxmemory-policy noeviction"
	for _, args := range [][]string{nil, {"-q"}} {
		if stderr := run(args...); stderr != "redlatch: "+s.URL()+danger+"\n" {
			t.Errorf("%q: it prints %s", args, stderr)
		}
	}
	for _, args := range [][]string{{"--json"}, {"-q", "--json"}, {"--log-format", "json"}} {
		if stderr := run(args...); !strings.Contains(stderr, `"event":"warning"`) || strings.Count(stderr, "may evict") != 1 {
			t.Errorf("%q: it prints %s", args, stderr)
		}
	}
}
