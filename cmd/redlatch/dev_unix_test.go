//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// startDev starts redlatch dev and returns it with its output.
func startDev(t testing.TB, args ...string) (cmd *exec.Cmd, nodes []string, pids []int, dir string) {
	t.Helper()
	cmd = exec.Command("redlatch", append([]string{"dev", "--json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	var said struct {
		Event string
		Nodes []string
		Pids  []int
		Dir   string
	}
	if !lines.Scan() {
		t.Fatal("dev said nothing")
	}
	if err := json.Unmarshal(lines.Bytes(), &said); err != nil || said.Event != "started" {
		t.Fatalf("dev said %q, %v", lines.Text(), err)
	}
	return cmd, said.Nodes, said.Pids, said.Dir
}

func TestDevServersEndWithDev(t *testing.T) {
	servertest.Need(t)
	t.Parallel()
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	if runtime.GOOS == "linux" {
		signals = append(signals, syscall.SIGKILL)
	}
	for _, s := range signals {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			cmd, nodes, pids, dir := startDev(t, "-n", "3")
			if len(nodes) != 3 || len(pids) != 3 || slices.ContainsFunc(pids, func(pid int) bool { return !processes.Alive(pid) }) {
				t.Fatalf("dev has %q, %v", nodes, pids)
			}
			// They are in service at once.
			on(strings.Join(nodes, ",")).run(t, 0, "run -n job -- true")
			cmd.Process.Signal(s)
			code := exitCode(t, cmd.Wait())
			processes.Gone(t, pids)
			if s == syscall.SIGKILL {
				os.RemoveAll(dir)
				return
			}
			if code != 0 {
				t.Errorf("exit %d", code)
			}
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s is left behind", dir)
			}
		})
	}
}

func TestDevKillsServersThatDoNotEndAtTheSecondSignal(t *testing.T) {
	servertest.Need(t)
	t.Parallel()
	cmd, _, pids, dir := startDev(t, "-n", "3")
	for _, pid := range pids[:2] {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	cmd.Process.Signal(syscall.SIGINT)
	// The third has ended: dev has noticed the first.
	if !poll.Holds(poll.Patience, func() bool { return !processes.Alive(pids[2]) }) {
		t.Fatal("the third server is still alive")
	}
	cmd.Process.Signal(syscall.SIGINT)
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("exit %d", code)
	}
	processes.Gone(t, pids)
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left behind", dir)
	}
}

func TestDevRunsACommandBesideItsServers(t *testing.T) {
	servertest.Need(t)
	file := filepath.Join(t.TempDir(), "nodes")
	code, stdout, stderr := command(t, "dev", "-n", "3", "--", "sh", "-c", `echo "$REDLATCH_NODES" >"$0"; redlatch run -n job -- sh -c 'exit 42'`, file)
	text, _ := os.ReadFile(file)
	nodes := strings.Split(strings.TrimSpace(string(text)), ",")
	if code != 42 || stdout != "" || stderr != "" || len(nodes) != 3 {
		t.Errorf("exit %d, %q, %s%s", code, nodes, stdout, stderr)
	}
	on(nodes[0]).run(t, exitNoQuorum, "run -n job -- true") // it has ended
	t.Setenv("REDLATCH_NODES", "sqlite:"+file)
	t.Setenv("REDLATCH_MEMBERSHIP", "another")
	if code, _, stderr := command(t, "dev", "-n", "1", "--", "redlatch", "run", "-n", "job", "--", "true"); code != 0 {
		t.Errorf("with other nodes in the environment: exit %d, %s", code, stderr)
	}
	if code, _, _ := command(t, "dev", "-n", "1", "--", "sh", "-c", "kill -TERM $$"); code != 143 {
		t.Errorf("a command that was killed: exit %d", code)
	}
}

func TestDevWhoseServerDiesSaysSo(t *testing.T) {
	servertest.Need(t)
	t.Parallel()
	cmd, _, pids, _ := startDev(t, "-n", "3")
	syscall.Kill(pids[1], syscall.SIGKILL)
	if code := exitCode(t, cmd.Wait()); code != exitNoQuorum {
		t.Errorf("exit %d", code)
	}
	processes.Gone(t, pids)
}

func TestDevRefusesBadInput(t *testing.T) {
	t.Parallel()
	taken := servertest.Redis(t, 1)[0]
	port := taken.Addr()[strings.LastIndex(taken.Addr(), ":")+1:]
	n, _ := strconv.Atoi(port)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-n", "0"}, exitUsage, "--servers is 0: must be between 1 and 15"},
		{[]string{"-n", "16"}, exitUsage, "--servers is 16"},
		{[]string{"--port", "65535", "-n", "3"}, exitUsage, "--port is 65535: must be between 1 and 65533"},
		{[]string{"--port", "-1"}, exitUsage, "--port is -1"},
		{[]string{"--port", strconv.Itoa(n), "-n", "1"}, exitNoQuorum, "port " + port + " is not free; try another --port"},
		{[]string{"true"}, exitUsage, "write -- before CMD"},
		{[]string{"--"}, exitUsage, "no command after --"},
		{[]string{"--", "no-such-command"}, exitNotFound, `cannot run "no-such-command"`},
	} {
		code, stdout, stderr := command(t, append([]string{"dev"}, c.args...)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit %d, %s%s", c.args, code, stdout, stderr)
		}
	}
	// Nothing is installed; the error names what is missing.
	path, err := exec.LookPath("redlatch")
	must(t, err)
	bare := exec.Command(path, "dev")
	bare.Env = []string{"PATH=" + t.TempDir()}
	out, err := bare.CombinedOutput()
	if code := exitCode(t, err); code != exitNotFound || !strings.Contains(string(out), "apt-get install redis-server") {
		t.Errorf("without a server: exit %d, %s", code, out)
	}
}
