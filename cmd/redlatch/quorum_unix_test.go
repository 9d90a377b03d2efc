//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/redistest"
)

// run starts redlatch run on servers, and returns it with its stderr.
func run(t *testing.T, servers []*redistest.Server, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	args = append([]string{"run", "--nodes", strings.Join(redistest.Addresses(servers), ",")}, args...)
	cmd := exec.Command("redlatch", args...)
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, stderr
}

// declareNew has redlatch init mark servers that were just started.
func declareNew(t *testing.T, servers []*redistest.Server, args ...string) {
	t.Helper()
	args = append([]string{"init", "--assume-fresh", "--nodes", strings.Join(redistest.Addresses(servers), ",")}, args...)
	if out, err := exec.Command("redlatch", args...).CombinedOutput(); err != nil {
		t.Fatalf("redlatch init: %v\n%s", err, out)
	}
}

// newQuorum starts servers that are declared to be new.
func newQuorum(t *testing.T, n int) []*redistest.Server {
	t.Helper()
	servers := redistest.Start(t, n)
	declareNew(t, servers)
	return servers
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

func TestMinorityOfDeadNodesIsNoObstacle(t *testing.T) {
	servers := redistest.Start(t, 5)
	declareNew(t, servers)
	servers[0].Kill()
	servers[3].Kill()
	cmd, stderr := run(t, servers, "job", "--", "sh", "-c", "exit 42")
	if code := exitCode(t, cmd.Wait()); code != 42 || stderr.Len() > 0 {
		t.Errorf("exit code %d, want 42; %s", code, stderr)
	}
	for _, i := range []int{1, 2, 4} {
		if keys := servers[i].Keys(); len(keys) > 0 {
			t.Errorf("node %d still has %q", i, keys)
		}
	}
}

func TestMajorityOfDeadNodesExits69(t *testing.T) {
	servers := redistest.Start(t, 5)
	for _, s := range servers[:3] {
		s.Kill()
	}
	ran := filepath.Join(t.TempDir(), "ran")
	cmd, stderr := run(t, servers, "job", "--", "touch", ran)
	if code := exitCode(t, cmd.Wait()); code != exitNoQuorum {
		t.Errorf("exit code %d, want %d", code, exitNoQuorum)
	}
	if text := stderr.String(); !strings.HasPrefix(text, `redlatch: acquire of "job" needs 3 of 5 nodes`) || strings.Count(text, "\n") != 1 {
		t.Errorf("stderr: %s", text)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("CMD ran without a lock")
	}
	for _, s := range servers[3:] {
		if keys := s.Keys(); len(keys) > 0 {
			t.Errorf("%s still has %q", s.Addr(), keys)
		}
	}
}

func TestFrozenQuorumEndsTheGroupBeforeTheDeadline(t *testing.T) {
	const ttl = 3 * time.Second
	for _, heeds := range []bool{true, false} {
		name := map[bool]string{true: "heeding TERM", false: "ignoring TERM"}[heeds]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := redistest.Start(t, 3)
			declareNew(t, servers)
			file := filepath.Join(t.TempDir(), "pids")
			script := `sleep 1000 & echo $! >>"$0"; sleep 1000 & echo $! >>"$0"; echo $$ >>"$0"; wait; wait`
			if !heeds {
				script = `trap "" TERM; ` + script
			}
			cmd, stderr := run(t, servers, "--ttl", ttl.String(), "job", "--", "sh", "-c", script, file)
			var pids []int
			if !soon(func() bool {
				text, _ := os.ReadFile(file)
				pids = nil
				for field := range strings.FieldsSeq(string(text)) {
					pid, _ := strconv.Atoi(field)
					pids = append(pids, pid)
				}
				return len(pids) == 3
			}) {
				t.Fatalf("CMD did not start: %s", stderr)
			}
			// No extension that begins after this is confirmed, so the
			// deadline is less than a TTL away.
			servers[0].Freeze()
			servers[1].Freeze()
			deadline := time.Now().Add(ttl)
			if !soon(func() bool { return !slices.ContainsFunc(pids, alive) }) {
				t.Errorf("of %v some are still alive", pids)
			}
			if late := time.Since(deadline); late > 0 {
				t.Errorf("the group was gone %v after the deadline", late)
			}
			if code := exitCode(t, cmd.Wait()); code != exitLost {
				t.Errorf("exit code %d, want %d", code, exitLost)
			}
			if text := stderr.String(); !strings.Contains(text, `"job" could not be extended in time, and CMD was ended: of 3 nodes 1 granted it, 0 refused and 2 did not answer`) {
				t.Errorf("stderr: %s", text)
			}
		})
	}
}
