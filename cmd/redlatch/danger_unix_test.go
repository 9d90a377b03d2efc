//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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
	for _, args := range [][]string{{"--json"}, {"-q", "--json"}} {
		if stderr := run(args...); !strings.Contains(stderr, `"event":"warning"`) || strings.Count(stderr, "may evict") != 1 {
			t.Errorf("%q: it prints %s", args, stderr)
		}
	}
}

// TestReaderOfStderrThatIsGoneDoesNotEndTheCommand writes a log into a pipe that
// nobody reads. CMD has the signal's default action, as without redlatch.
func TestReaderOfStderrThatIsGoneDoesNotEndTheCommand(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	must(t, err)
	must(t, r.Close())
	defer w.Close()
	for script, want := range map[string]int{"exit 7": 7, "kill -PIPE $$; exit 7": exitSignal + int(syscall.SIGPIPE)} {
		cmd := exec.Command("redlatch", "run", "--json", "--nodes", "sqlite:"+filepath.Join(t.TempDir(), "locks.db"), "job", "--", "sh", "-c", script)
		cmd.Stderr = w
		if code := exitCode(t, cmd.Run()); code != want {
			t.Errorf("%s: exit %d, want %d", script, code, want)
		}
	}
}
