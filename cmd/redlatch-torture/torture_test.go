//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redlatch/redlatch/internal/test/chaos"
	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/processes"
	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/snippets"
)

var must = check.Must

// bare returns redlatch-torture with nothing in its PATH but the named programs.
func bare(t testing.TB, programs []string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("redlatch-torture")
	must(t, err)
	dir := t.TempDir()
	for _, name := range programs {
		program, err := exec.LookPath(name)
		must(t, err)
		must(t, os.Symlink(program, filepath.Join(dir, name)))
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "PATH="+dir)
	return cmd
}

func TestTortureRefusesBadInput(t *testing.T) {
	servertest.Need(t)
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--faults", "earthquake"}, exitUsage, `the fault "earthquake" is unknown: it must be all, within, beyond, edges, none, or one of kill, `},
		{[]string{"--faults", ""}, exitUsage, `the fault "" is unknown`},
		{[]string{"--for", "0s"}, exitUsage, "--for is 0s: must be between 1s and 2h"},
		{[]string{"--for", "ten"}, exitUsage, `invalid argument "ten" for "--for"`},
		{[]string{"--clients", "0"}, exitUsage, "--clients is 0: must be between 1 and 100"},
		{[]string{"--names", "-1"}, exitUsage, "--names is -1"},
		{[]string{"-n", "0"}, exitUsage, "--servers is 0: must be between 1 and 15"},
		{[]string{"now"}, exitUsage, `redlatch-torture takes no argument, and "now" is one`},
		{[]string{"--keep", "/dev/null/x"}, exitOutput, "--keep: "},
	} {
		code, stdout, stderr := command(t, c.args...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit %d, %s%s", c.args, code, stdout, stderr)
		}
	}
	code, stdout, stderr := both(t, bare(t, nil))
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, "apt-get install redis-server") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("without a server: exit %d, %s%s", code, stdout, stderr)
	}
}

func TestTortureListsItsFaults(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t, "--list")
	lists := func(f chaos.Family) bool {
		return strings.Contains(stdout, fmt.Sprintf("%-14s %s  %s\n", f.Name, f.Group(), f.About))
	}
	if code != 0 || stderr != "" || slices.ContainsFunc(chaos.Families(), func(f chaos.Family) bool { return !lists(f) }) {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
}

func TestTortureHoldsAndKeepsItsHistory(t *testing.T) {
	servertest.Need(t)
	t.Parallel()
	keep := filepath.Join(t.TempDir(), "kept")
	code, stdout, stderr := command(t, "--for", "3s", "--seed", "7", "--clients", "3", "--names", "1", "-n", "3",
		"--faults", "kill,empty,pause,swallow,evict", "--keep", keep)
	if code != 0 || stderr != "" || !strings.Contains(stdout, "held: every promise was kept\nseed 7: ") || !strings.Contains(stdout, ", out of 5\n") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(keep)
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, want := range []string{`"family":`, `"kind":"got"`, `"was":`} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("no line has %s", want)
		}
	}
	var verdict chaos.Verdict
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &verdict); err != nil || !verdict.Held() || verdict.Counts.Acquisitions() == 0 {
		t.Errorf("the verdict is %+v, %v", verdict, err)
	}
}

func TestTortureSaysWhatCannotBeRunAndDoesNotCountIt(t *testing.T) {
	servertest.Need(t)
	t.Parallel()
	code, stdout, stderr := both(t, bare(t, []string{"redis-server"}, "--for", "1s", "-n", "3", "--clients", "2", "--faults", "clock-jump,clock-drift,reset"))
	if code != 0 || strings.Count(stderr, "\n") != 2 ||
		!strings.Contains(stderr, "not run: clock-jump: there is no C compiler") || !strings.Contains(stderr, "not run: clock-drift: there is no C compiler") ||
		!strings.Contains(stdout, "not run: clock-drift") || !strings.Contains(stdout, "not run: clock-jump") || !strings.Contains(stdout, "out of 1\n") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = both(t, bare(t, []string{"redis-server"}, "--for", "1s", "--faults", "clock-drift"))
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, "none of the faults is possible here: clock-drift: there is no C compiler") {
		t.Errorf("with no fault left: exit %d, %s%s", code, stdout, stderr)
	}
}

func TestTortureThatIsInterruptedLeavesNothingBehind(t *testing.T) {
	servertest.Need(t)
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd := exec.Command("redlatch-torture", "--for", "1m", "--clients", "2", "-n", "3", "--faults", "kill,pause")
		stderr, err := cmd.StderrPipe()
		must(t, err)
		must(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill() })
		var children []int
		if !poll.Holds(poll.Patience, func() bool { children = childrenOf(cmd.Process.Pid); return len(children) == 5 }) {
			t.Fatalf("its children are %v", children)
		}
		cmd.Process.Signal(s)
		said, _ := io.ReadAll(stderr)
		// On a slow machine it has reported progress before.
		last := slices.DeleteFunc(slices.Collect(strings.Lines(string(said))), func(line string) bool { return strings.Contains(line, " of 1m0s: ") })
		if code := exitCode(t, cmd.Wait()); code != exitSignal+int(s) || len(last) != 1 {
			t.Errorf("exit %d, %s", code, said)
		}
		processes.Gone(t, children)
	}
}

// childrenOf returns the processes that a process has started.
func childrenOf(parent int) (children []int) {
	out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=,comm=").Output()
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[1] == strconv.Itoa(parent) && fields[2] != "ps" {
			pid, _ := strconv.Atoi(fields[0])
			children = append(children, pid)
		}
	}
	return children
}

// TestCommandLinesOfTheDocumentationAreUnderstood parses every command line of
// redlatch-torture that the documentation shows.
func TestCommandLinesOfTheDocumentationAreUnderstood(t *testing.T) {
	blocks, err := snippets.Blocks("../..")
	must(t, err)
	seen := 0
	for _, b := range blocks {
		_, script := snippets.Script(b)
		for _, args := range snippets.Arguments("redlatch-torture", script) {
			seen++
			if _, err := parse(args); err != nil {
				t.Errorf("%s: redlatch-torture %q: %v", b.Where(), args, err)
			}
		}
	}
	if seen == 0 {
		t.Error("the documentation shows no command line of redlatch-torture")
	}
}

func TestHelpFitsATerminal(t *testing.T) {
	code, stdout, stderr := command(t, "--help")
	if code != 0 || stderr != "" || !strings.HasPrefix(stdout, help) || !strings.Contains(stdout, "--keep FILE") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	for line := range strings.SplitSeq(help, "\n") {
		if len([]rune(line)) > 84 {
			t.Errorf("a line of the help is %d wide: %s", len(line), line)
		}
	}
}
