//go:build unix

package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/chaos"
	"github.com/redlatch/redlatch/internal/test/poll"
	"github.com/redlatch/redlatch/internal/test/servertest"
)

// bare returns redlatch-torture with nothing in its PATH but the named programs.
func bare(t testing.TB, programs []string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("redlatch-torture")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range programs {
		program, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
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
		{[]string{"--faults", "earthquake"}, exitUsage, `the fault "earthquake" is unknown: it must be all, within, beyond, none, or one of kill, `},
		{[]string{"--faults", ""}, exitUsage, `the fault "" is unknown`},
		{[]string{"--for", "0s"}, exitUsage, "--for is 0s: must be between 1s and 2h"},
		{[]string{"--for", "ten"}, exitUsage, `invalid argument "ten" for "--for"`},
		{[]string{"--clients", "0"}, exitUsage, "--clients is 0: must be between 1 and 100"},
		{[]string{"--names", "-1"}, exitUsage, "--names is -1"},
		{[]string{"-n", "0"}, exitUsage, "--servers is 0: must be between 1 and 15"},
		{[]string{"now"}, exitUsage, `redlatch-torture takes no argument, and "now" is one`},
		{[]string{"--report", filepath.Join(t.TempDir(), "no", "such", "folder.html")}, exitOutput, "--report: "},
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
	if code != 0 || stderr != "" {
		t.Errorf("exit %d, %s", code, stderr)
	}
	for _, f := range chaos.Families() {
		if !strings.Contains(stdout, f.Name) || !strings.Contains(stdout, f.About) {
			t.Errorf("%s is not listed", f.Name)
		}
	}
	if !strings.Contains(stdout, "evict          beyond") || !strings.Contains(stdout, "kill           within") {
		t.Errorf("it does not say which are beyond the assumptions:\n%s", stdout)
	}
	if _, words, _ := command(t, "__complete", "--faults", ""); !strings.Contains(words, "within") || !strings.Contains(words, "promote\t") {
		t.Errorf("--faults completes to %s", words)
	}
}

func TestTortureHoldsAndDrawsItsHistory(t *testing.T) {
	servertest.Need(t)
	t.Parallel()
	dir := t.TempDir()
	page, keep := filepath.Join(dir, "t.html"), filepath.Join(dir, "kept")
	code, stdout, stderr := command(t, "--for", "3s", "--seed", "7", "--clients", "3", "--names", "1", "-n", "3",
		"--faults", "kill,empty,pause,swallow,evict", "--report", page, "--keep", keep, "-o", "json")
	var verdict struct {
		Event        string
		Held         bool
		Seed         string
		Acquisitions int
		Faults       int
		Ran          []string
		LeftOut      []chaos.Left `json:"left_out"`
	}
	if err := json.Unmarshal([]byte(stdout), &verdict); err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	if code != 0 || !verdict.Held || verdict.Event != "verdict" || verdict.Seed != "7" || verdict.Acquisitions == 0 || verdict.Faults == 0 ||
		len(verdict.Ran) != 5 || len(verdict.LeftOut) > 0 {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	for _, name := range []string{"events.jsonl", "faults.jsonl", "writes.jsonl", "verdict.json"} {
		if info, err := os.Stat(filepath.Join(keep, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	checkPage(t, string(text))
}

// checkPage checks that a page shows what it should, loads nothing from
// elsewhere, and has well-formed drawings.
func checkPage(t testing.TB, text string) {
	t.Helper()
	for _, want := range []string{"held: every promise was kept", "seed 7", ">job-1<", ">node 1<", ">client 3<", `class="tokens"`, "prefers-color-scheme: dark"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, outside := range []string{"http:", "https:", "src=", "@import", "url("} {
		if strings.Contains(text, outside) {
			t.Errorf("the page has %s: it must need no other file", outside)
		}
	}
	drawings := 0
	for rest := text; ; drawings++ {
		_, after, ok := strings.Cut(rest, "<svg")
		if !ok {
			break
		}
		svg, after, _ := strings.Cut(after, "</svg>")
		d := xml.NewDecoder(strings.NewReader("<svg" + svg + "</svg>"))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("drawing %d: %v", drawings, err)
				break
			}
		}
		rest = after
	}
	if drawings != 2 {
		t.Errorf("there are %d drawings", drawings)
	}
}

func TestTortureSaysWhatCannotBeRunAndDoesNotCountIt(t *testing.T) {
	servertest.Need(t)
	t.Parallel()
	code, stdout, stderr := both(t, bare(t, []string{"redis-server"}, "-q", "--for", "1s", "-n", "3", "--clients", "2", "--faults", "filter,clock-jump,reset"))
	if code != 0 || strings.Count(stderr, "\n") != 2 ||
		!strings.Contains(stderr, "left out: clock-jump (there is no C compiler") || !strings.Contains(stderr, "left out: filter (ip is missing") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if !strings.Contains(stdout, "not run: filter") || !strings.Contains(stdout, "not run: clock-jump") || !strings.Contains(stdout, "out of 1, in 1s") {
		t.Errorf("the verdict is silent about it: %s", stdout)
	}
	code, stdout, stderr = both(t, bare(t, []string{"redis-server"}, "--for", "1s", "--faults", "filter"))
	if code != exitFailed || stdout != "" || !strings.Contains(stderr, "none of the faults is possible here: ip is missing") {
		t.Errorf("with no fault left: exit %d, %s%s", code, stdout, stderr)
	}
}

func TestTortureWithoutFaultsHasWritersAlone(t *testing.T) {
	servertest.Need(t)
	t.Parallel()
	code, stdout, stderr := command(t, "-q", "--for", "2s", "-n", "3", "--clients", "3", "--names", "1", "--faults", "none")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "held: ") || !strings.Contains(stdout, ": 0 faults of 0 kinds, out of 0, in 2s; ") ||
		!strings.Contains(stdout, "; as reader 0 times, up to 0 at once; as slot 0 times") || !strings.Contains(stdout, "; 0 leases lost") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
}

func TestTortureThatIsInterruptedLeavesNothingBehind(t *testing.T) {
	servertest.Need(t)
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd := exec.Command("redlatch-torture", "--for", "1m", "--clients", "2", "-n", "3", "--faults", "kill,pause")
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
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
		if !poll.Holds(poll.Patience, func() bool { return !slices.ContainsFunc(children, alive) }) {
			t.Errorf("of %v some are still alive", children)
		}
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

func TestTortureViewShowsCountsHoldersAndFaults(t *testing.T) {
	s := chaos.Status{Phase: "torture", Elapsed: 10 * time.Second, For: 30 * time.Second, Counts: chaos.Counts{Acquisitions: 12}, Names: []string{"job-1", "job-2", "job-3"},
		Holders: map[string][]chaos.Event{"job-1": {{Client: 3, Token: 42}}, "job-3": {{Client: 1, Share: chaos.Share{Mode: chaos.Reader}}, {Client: 2, Share: chaos.Share{Mode: chaos.Reader}}}}}
	for i := range 9 {
		s.Active = append(s.Active, chaos.Fault{Family: "freeze", Node: i + 1, Detail: "is frozen"})
	}
	lines := viewLines(s, 60)
	text := strings.Join(lines, "\n")
	for _, want := range []string{"torture", "10s of 30s", "12 acquisitions", "client 3, token 42", "job-2      –", "job-3      client 1 (shared), client 2 (shared)", "freeze: is frozen", "and 3 more"} {
		if !strings.Contains(text, want) {
			t.Errorf("it shows no %q:\n%s", want, text)
		}
	}
}
