package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/servertest"
	"github.com/redlatch/redlatch/internal/test/snippets"
	"github.com/redlatch/redlatch/internal/test/stall"
)

// drillPrelude is what the documentation has its reader type first.
const drillPrelude = `exec 2>&1
pid() { redis-cli -p "$1" info server | tr -d '\r' | sed -n 's/^process_id://p'; }
`

// drillPauses are the pauses of the documentation, and what they are for: the
// reader waits for long enough, a busy machine needs to look.
var drillPauses = map[string]string{
	"sleep 1": `until job=$(ps -o args= -p $!) && pgrep -xf "${job##*-- }" >/dev/null; do sleep 0.05; done`,
	"sleep 2": `until redis-cli -p 7003 ping >/dev/null 2>&1; do sleep 0.05; done`,
}

// drillStep is a command, and what it prints.
type drillStep struct {
	command string
	prints  []string
}

// drillSteps takes a console block apart.
func drillSteps(text string) []drillStep {
	var steps []drillStep
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, drillStep{command: command})
			continue
		}
		last := &steps[len(steps)-1]
		last.prints = append(last.prints, line)
	}
	return steps
}

// TestDrillsShowWhatTheDocumentationSays runs the drills of docs/operations.md,
// each on three servers of its own. Those that change the membership wait for a
// whole quarantine.
func TestDrillsShowWhatTheDocumentationSays(t *testing.T) {
	t.Parallel()
	servertest.Need(t)
	blocks, err := snippets.Blocks("../..")
	must(t, err)
	drills := 0
	for _, b := range blocks {
		if b.File != "docs/operations.md" || b.Lang != "console" {
			continue
		}
		drills++
		t.Run(fmt.Sprintf("line %d", b.Line), func(t *testing.T) {
			t.Parallel()
			if testing.Short() && strings.Contains(b.Text, "--former") {
				t.Skip("waits for a quarantine")
			}
			stall.Retry(t, func(t testing.TB) { drill(t, drillSteps(b.Text)) })
		})
	}
	if drills < 7 {
		t.Errorf("found %d drills", drills)
	}
}

// drill runs the steps of a drill in one shell, and compares what each prints.
func drill(t testing.TB, steps []drillStep) {
	servers := servertest.Redis(t, 3)
	if !strings.HasPrefix(steps[0].command, "export REDLATCH_NODES=") { // that one begins with a list of one
		declareNew(t, servers)
	}
	var here, there []string // ports: of the documentation, and of the test
	for i, s := range servers {
		_, port, _ := strings.Cut(s.Addr(), ":")
		here, there = append(here, fmt.Sprint(7001+i), port), append(there, port, fmt.Sprint(7001+i))
	}
	script := drillPrelude
	for _, step := range steps {
		command := step.command
		if strings.HasPrefix(command, "redis-server --port 7003 ") {
			// This one is not a process of the test.
			t.Cleanup(func() { exec.Command("redis-cli", "-p", here[5], "shutdown", "nosave").Run() })
		}
		if pause := drillPauses[command]; pause != "" {
			command = pause
		}
		script += command + "\nprintf '\\n@@\\n'\n"
	}
	cmd := exec.Command("bash", "-c", strings.NewReplacer(here...).Replace(script))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "REDLATCH_NODES="+strings.Join(servertest.Addresses(servers), ","), "TMPDIR="+t.TempDir())
	cmd.WaitDelay = 10 * time.Second
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("bash: %v", err)
	}
	printed := strings.Split(strings.NewReplacer(there...).Replace(string(out)), "\n@@\n")
	if len(printed) != len(steps)+1 {
		t.Fatalf("%d of %d steps were run: %s", len(printed)-1, len(steps), out)
	}
	for i, step := range steps {
		var lines []string
		for line := range strings.Lines(printed[i]) {
			// The shell reports a job that was killed.
			if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, " Killed ") {
				lines = append(lines, line)
			}
		}
		if !printsAs(lines, step.prints) {
			stall.Busy(t, 60*time.Millisecond, began) // a node has a second to answer
			t.Errorf("$ %s\nprints\n%s\nand the documentation says\n%s", step.command, strings.Join(lines, "\n"), strings.Join(step.prints, "\n"))
		}
	}
}

// printsAs compares lines with those of the documentation, in which … is for
// anything. Times, and who a holder is, may differ.
func printsAs(lines, want []string) bool {
	if len(lines) != len(want) {
		return false
	}
	for i, line := range lines {
		parts := strings.Split(withoutTimes(want[i]), "…")
		for j, part := range parts {
			parts[j] = regexp.QuoteMeta(part)
		}
		if !regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(withoutTimes(line)) {
			return false
		}
	}
	return true
}

var drillTimes = []struct {
	is *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`\S+/\d+/`), "HOST/PID/"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`), "DATE"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(h|m|s|ms|µs))+\b`), "TIME"},
	{regexp.MustCompile(` +`), " "},
}

func withoutTimes(line string) string {
	for _, t := range drillTimes {
		line = t.is.ReplaceAllString(line, t.as)
	}
	return line
}
