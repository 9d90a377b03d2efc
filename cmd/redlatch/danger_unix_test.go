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
	nodes := these(s)
	nodes.run(t, 0, "run job -- true").lines(0)
	s.Do("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "volatile-lru")
	const danger = ": the server may evict keys (maxmemory-policy volatile-lru), and with them locks: set maxmemory-policy noeviction"
	for _, flags := range []string{"", "-q"} {
		nodes.run(t, 0, "run "+flags+" job -- true").err("redlatch: " + s.URL() + danger + "\n").lines(1)
		s := nodes.run(t, 0, "run --json "+flags+" job -- true").err(`"event":"warning"`)
		if strings.Count(s.stderr, "may evict") != 1 {
			t.Errorf("with --json it prints %s", s.stderr)
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
