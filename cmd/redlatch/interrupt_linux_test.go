package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redlatch/redlatch/internal/test/poll"
)

// TestCtrlCEndsALoopOfRuns has shells run redlatch in a loop. A shell ends such
// a loop when the command died by the interrupt, and, in a script, when the
// interrupt reached the shell too.
func TestCtrlCEndsALoopOfRuns(t *testing.T) {
	t.Parallel()
	const cmd = `sh -c 'echo sta$((0))rted; exec sleep 1000'`
	for _, c := range []struct {
		name, how, shell, before string
	}{
		{name: "typed in", how: "redlatch run job -- " + cmd},
		{name: "in a script", shell: "bash", how: "redlatch run job -- " + cmd},
		{name: "without the terminal's foreground", shell: "bash", how: "redlatch run job -- " + cmd + " | cat"},
		{name: "a run within a run", shell: "bash", how: "redlatch run job -- redlatch run inner -- " + cmd},
		{name: "while waiting", shell: "bash", before: "redlatch lock --ttl 1h job >/dev/null", how: "redlatch run job -- true"},
		{name: "while lock waits", shell: "bash", before: "redlatch lock --ttl 1h job >/dev/null", how: "redlatch lock job"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			term := shell(t)
			if c.before != "" {
				term.types(c.before + "\n")
				term.shows("ready> ")
			}
			line := "while :; do " + c.how + "; echo aga$((0))in; done"
			if c.shell != "" {
				// It ends with the test at the latest, which removes the
				// script.
				line = strings.Replace(line, ":", `[ -e "$0" ]`, 1)
				script := filepath.Join(t.TempDir(), "loop")
				must(t, os.WriteFile(script, []byte(line+"\n"), 0o600))
				line = c.shell + " " + script
			}
			term.types(line + "\n")
			if c.before == "" {
				term.shows("sta0rted")
			} else {
				poll.Until(t, "one that waits", func() bool {
					ls := exec.Command("redlatch", "ls", "--json")
					ls.Env = term.cmd.Env
					out, err := ls.Output()
					return err == nil && strings.Contains(string(out), `"waiting":1`)
				})
			}
			term.types(ctrlC)
			if seen := term.shows("ready> "); strings.Contains(seen, "aga0in") || strings.Contains(seen, "sta0rted") {
				t.Errorf("the loop went on:\n%s", seen)
			}
			term.types("echo code $?\n")
			term.shows("code 130")
			term.leave()
		})
	}
}

// TestCtrlCThatCommandHandlesDoesNotEndTheLoop: for a shell, a command that
// exits after an interrupt has handled it.
func TestCtrlCThatCommandHandlesDoesNotEndTheLoop(t *testing.T) {
	t.Parallel()
	term := onTerminal(t, "bash", "-c", `for i in 1 2; do redlatch run job -- sh -c 'trap "exit 3" INT; echo started $0; while :; do sleep 0.01; done' $i; echo code $?; done`)
	term.shows("started 1")
	term.types(ctrlC)
	term.shows("code 3")
	term.shows("started 2")
	term.types(ctrlC)
	term.shows("code 3")
	term.cmd.Wait()
}

// TestInterruptSentToRedlatchAloneStaysThere: a signal that was not sent by a
// key must not reach the other processes of our group.
func TestInterruptSentToRedlatchAloneStaysThere(t *testing.T) {
	t.Parallel()
	term := onTerminal(t, "bash", "-c", `trap "echo trapped" INT; redlatch run job -- sh -c 'echo started; kill -INT $PPID; exec sleep 1000'; echo code $?`)
	if seen := term.shows("code 130"); strings.Contains(seen, "trapped") {
		t.Errorf("the shell was interrupted too:\n%s", seen)
	}
	term.cmd.Wait()
}

// TestQuitLeavesNoCoreOfOurs: CMD may leave a core file, and ours would
// overwrite it.
func TestQuitLeavesNoCoreOfOurs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", `ulimit -c unlimited; exec redlatch run --nodes sqlite:"$0"/locks.db job -- sh -c 'ulimit -c 0; kill -QUIT $$'`, dir)
	cmd.Dir = dir
	err := cmd.Run()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGQUIT {
		t.Fatalf("redlatch ended with %v, want the signal QUIT", err)
	}
	if status.CoreDump() {
		t.Error("redlatch left a core")
	}
}
