//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
	"github.com/redlatch/redlatch/internal/test/processes"
)

func TestMain(m *testing.M) { processes.Main(m, main) }

// lines returns the lines of a file; none if it does not exist.
func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// Some come together, and some when the report is long done.
func TestJobThatTenMachinesStartRunsOnce(t *testing.T) {
	_, env := processes.Quorum(t, 3)
	report := filepath.Join(t.TempDir(), "report.txt")
	said := map[string]int{}
	for _, together := range []int{5, 1, 4} {
		var machines []*processes.Process
		for i := range together {
			machines = append(machines, processes.Start(t, fmt.Sprint("machine ", i), env, "-out", report, "-day", "2026-11-16"))
		}
		for _, m := range machines {
			m.Ends(0)
			said[m.Said()]++
		}
	}
	if said["the report is written"] != 1 || said["not run here: the report of 2026-11-16 is completed"] != 9 {
		t.Errorf("the machines say %v", said)
	}
	processes.Start(t, "the next day", env, "-out", report, "-day", "2026-11-17").Ends(0)
	if all := lines(t, report); len(all) != 2 || !strings.Contains(all[0], "2026-11-16") || !strings.Contains(all[1], "2026-11-17") {
		t.Errorf("two days have the reports %q", all)
	}
}

func TestJobThatFailedIsRunAgain(t *testing.T) {
	env, dir := processes.File(t), filepath.Join(t.TempDir(), "reports")
	report := filepath.Join(dir, "report.txt")
	start := func(name string) *processes.Process {
		return processes.Start(t, name, env, "-out", report, "-day", "2026-11-16", "-ttl", "2s")
	}
	failed := start("no folder")
	failed.Ends(1)
	if !strings.Contains(failed.Said(), "no such file") {
		t.Errorf("it fails with %s", failed.Said())
	}
	check.Must(t, os.Mkdir(dir, 0o755))
	// One that is killed in the middle: it opens a pipe that nobody reads.
	check.Must(t, syscall.Mkfifo(report, 0o644))
	killed := []*processes.Process{start("killed"), start("killed too")}
	processes.Waiting(t, env, "nightly-report", 1)
	for _, p := range killed {
		p.Kill()
	}
	check.Must(t, os.Remove(report))
	last := start("last")
	last.Line("the report is written")
	last.Ends(0)
	start("too late").Ends(0)
	if all := lines(t, report); len(all) != 1 {
		t.Errorf("the day has the reports %q", all)
	}
}
