//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/supervise"
	"github.com/redlatch/redlatch/internal/test/fresh"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// run starts redlatch run on servers, and returns it with its stderr.
func run(t testing.TB, servers []*servertest.Server, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	return start(t, append([]string{"run", "--nodes", strings.Join(servertest.Addresses(servers), ",")}, args...)...)
}

// start starts redlatch, and returns it with its stderr.
func start(t testing.TB, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command("redlatch", args...)
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	cmd.WaitDelay = 5 * time.Second
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, stderr
}

// appears waits until a file is there.
func appears(t testing.TB, file string, said ...any) {
	t.Helper()
	if !poll.Holds(poll.Patience, func() bool { _, err := os.Stat(file); return err == nil }) {
		t.Fatalf("%s is not there after %v: %s", file, poll.Patience, said)
	}
}

// pidsIn returns the process ids in a file, once there are n.
func pidsIn(t testing.TB, file string, n int, said ...any) (pids []int) {
	t.Helper()
	if !poll.Holds(poll.Patience, func() bool {
		text, _ := os.ReadFile(file)
		pids = nil
		for field := range strings.FieldsSeq(string(text)) {
			pid, _ := strconv.Atoi(field)
			pids = append(pids, pid)
		}
		return len(pids) == n
	}) {
		t.Fatalf("CMD did not start: %s", said)
	}
	return pids
}

// declareNew runs redlatch init to mark servers that were just started.
func declareNew(t testing.TB, servers []*servertest.Server, args ...string) {
	t.Helper()
	declareAllNew(t, strings.Join(servertest.Addresses(servers), ","), args...)
}

// declareAllNew is declareNew by the addresses of the servers. On a busy machine
// it takes more than one try.
func declareAllNew(t testing.TB, nodes string, args ...string) {
	t.Helper()
	err := fresh.Try(t.Context(), func(ctx context.Context, opts admin.InitOptions) error {
		all := append([]string{"init", "--nodes", nodes}, args...)
		if opts.AssumeFresh {
			all = append(all, "--assume-fresh", "--yes")
		}
		cmd := exec.CommandContext(ctx, "redlatch", all...)
		out, err := cmd.CombinedOutput()
		switch {
		case err == nil:
			return nil
		case bytes.Contains(out, []byte("nodes are not new")):
			err = admin.ErrNotFresh
		case cmd.ProcessState.ExitCode() == exitUsage:
			err = redlatch.ErrConfig
		}
		return fmt.Errorf("%w\n%s", err, out)
	})
	if err != nil {
		t.Fatalf("redlatch init: %v", err)
	}
}

// newQuorum starts servers that are declared to be new.
func newQuorum(t testing.TB, n int) []*servertest.Server {
	t.Helper()
	servers := servertest.Redis(t, n)
	declareNew(t, servers)
	return servers
}

// exitCode is the exit code as a shell reports it: 128 and the signal for a
// process that died by one.
func exitCode(t testing.TB, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit == nil {
		return 0
	}
	return supervise.ExitOf(exit.ProcessState).Code
}

func TestMinorityOfDeadNodesIsNoObstacleAndAMajorityExits69(t *testing.T) {
	t.Parallel()
	servers := newQuorum(t, 5)
	free := func(servers ...*servertest.Server) {
		t.Helper()
		for _, s := range servers {
			if keys := s.Keys(); len(keys) > 0 {
				t.Errorf("%s still has %q", s.Addr(), keys)
			}
		}
	}
	servers[0].Kill()
	servers[3].Kill()
	cmd, stderr := run(t, servers, "job", "--", "sh", "-c", "exit 42")
	if code := exitCode(t, cmd.Wait()); code != 42 || stderr.Len() > 0 {
		t.Errorf("exit code %d, want 42; %s", code, stderr)
	}
	free(servers[1], servers[2], servers[4])
	servers[1].Kill()
	refused := these(servers...).run(t, exitNoQuorum, "run job -- echo ran").times(0, "ran").lines(1)
	if !strings.HasPrefix(refused.stderr, `redlatch: cannot acquire "job": no quorum (3 of 5 needed)`) {
		t.Errorf("stderr: %s", refused.stderr)
	}
	free(servers[2], servers[4])
}

func TestFrozenQuorumEndsTheGroupBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	for name, trap := range map[string]string{"heeding TERM": "", "ignoring TERM": `trap "" TERM; `} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servertest.Need(t)
			stall.Retry(t, func(t testing.TB) {
				servers := newQuorum(t, 3)
				file := filepath.Join(t.TempDir(), "pids")
				script := trap + `sleep 1000 & echo $! >>"$0"; sleep 1000 & echo $! >>"$0"; echo $$ >>"$0"; wait; wait`
				began := time.Now()
				cmd, stderr := run(t, servers, "--ttl", ttl.String(), "job", "--", "sh", "-c", script, file)
				pids := pidsIn(t, file, 3, stderr)
				// No extension that begins after this is confirmed, so the
				// deadline is less than a TTL away.
				servers[0].Freeze()
				servers[1].Freeze()
				deadline := time.Now().Add(ttl)
				processes.Gone(t, pids)
				late := time.Since(deadline)
				code := exitCode(t, cmd.Wait())
				if late > 0 || code != exitLost {
					stall.Busy(t, ttl/50, began)
				}
				if late > 0 {
					t.Errorf("the group was gone %v after the deadline", late)
				}
				if code != exitLost {
					t.Errorf("exit code %d, want %d", code, exitLost)
				}
				// It says since when the lock was held, and the last answer of
				// each node.
				want := regexp.MustCompile(`^redlatch: "job", held since [0-9:]+ \([0-9]+s\), could not be extended in time; CMD was ended: ` +
					`cannot extend "job": no quorum \(2 of 3 needed\): redis://\S+: node did not answer .*; redis://\S+: node did not answer .*; redis://\S+: [^;]*\n$`)
				if text := stderr.String(); !want.MatchString(text) {
					stall.Busy(t, ttl/50, began)
					t.Errorf("stderr: %s, want %v", text, want)
				}
			})
		})
	}
}
