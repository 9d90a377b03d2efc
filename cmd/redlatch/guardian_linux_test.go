package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestGuardianKeepsNothingOfTheUser examines a guardian from outside. A file
// that it kept open would keep a pipeline from ending, and a secret in its
// environment could be read there.
func TestGuardianKeepsNothingOfTheUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command("redlatch", "run", "job", "--", "sh", "-c", "echo >ready; exec cat")
	cmd.Env = append(os.Environ(), "REDLATCH_STATE_DIR="+dir, "PASSWORD=hunter2")
	cmd.Dir = dir
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	appears(t, filepath.Join(dir, "ready"))
	proc := fmt.Sprintf("/proc/%d/", cmd.Process.Pid)
	guard := fmt.Sprintf("/proc/%d/", guardianPid(cmd.Process.Pid))
	for fd := range 3 {
		users, err := os.Readlink(fmt.Sprint(proc, "fd/", fd))
		must(t, err)
		if its, err := os.Readlink(fmt.Sprint(guard, "fd/", fd)); err != nil || its == users {
			t.Errorf("descriptor %d of the guardian is %q (%v), and the user's is %q", fd, its, err, users)
		}
	}
	if at, err := os.Readlink(guard + "cwd"); err != nil || at != "/" {
		t.Errorf("the guardian is in %q, %v", at, err)
	}
	if env, err := os.ReadFile(guard + "environ"); err != nil || bytes.Contains(env, []byte("hunter2")) {
		t.Errorf("the guardian's environment of %d bytes has the password in it, or cannot be read: %v", len(env), err)
	}
	stdin.Close()
	if out, err := io.ReadAll(stdout); err != nil || len(out) > 0 {
		t.Errorf("stdout: %q, %v", out, err)
	}
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestFrozenRedlatchDoesNotOutliveItsLease stops redlatch itself, which is as
// good as dead when the lease is about to end. It uses a server: a process that
// is stopped while it writes to a file blocks all others that use it.
func TestFrozenRedlatchDoesNotOutliveItsLease(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	servers := servertest.Redis(t, 1)
	file := filepath.Join(t.TempDir(), "pids")
	script := `trap "" TERM; sleep 1000 & echo $! >>"$0"; echo $$ >>"$0"; while :; do sleep 0.02; done`
	cmd, stderr := run(t, servers, "--ttl", ttl.String(), "job", "--", "sh", "-c", script, file)
	pids := pidsIn(t, file, 2, stderr)
	cmd.Process.Signal(syscall.SIGSTOP)
	if next, said := run(t, servers, "job", "--", "true"); exitCode(t, next.Wait()) != 0 {
		t.Errorf("the next one: %s", said)
	}
	if slices.ContainsFunc(pids, processes.Alive) {
		t.Errorf("of %v some are alive while another has had the lock", pids)
	}
	cmd.Process.Signal(syscall.SIGCONT)
	if code := exitCode(t, cmd.Wait()); code != exitLost || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("exit code %d, want %d; stderr %q", code, exitLost, stderr)
	}
}

// TestKilledAtAnyMomentLeavesNothingRunning kills redlatch while it starts CMD,
// which starts others at once. The kills are spread over every step of that.
func TestKilledAtAnyMomentLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := buildCommand(t)
	marker := fmt.Sprintf("%d.%d", 100000+os.Getpid(), time.Now().UnixNano()%1e9)
	for i := range 60 {
		cmd := exec.Command(path, "run", "--ttl", "2s", fmt.Sprint("job", i), "--",
			"sh", "-c", "sleep "+marker+" & sleep "+marker+" & wait")
		cmd.Env = append(os.Environ(), "REDLATCH_STATE_DIR="+dir)
		must(t, cmd.Start())
		// CMD begins after some ten milliseconds.
		time.Sleep(5*time.Millisecond + time.Duration(i)*300*time.Microsecond)
		cmd.Process.Kill()
		cmd.Wait()
	}
	var left string
	if !poll.Holds(poll.Patience, func() bool {
		out, _ := exec.Command("ps", "-A", "-o", "pid=,args=").Output()
		left = ""
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, marker) {
				left += line
			}
		}
		return left == ""
	}) {
		t.Errorf("still there:\n%s", left)
	}
}
