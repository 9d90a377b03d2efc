//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/progtest"
)

func TestMain(m *testing.M) { progtest.Main(m, main) }

func TestJobThatThreeMachinesStartRunsOnce(t *testing.T) {
	_, env := progtest.Quorum(t, 3)
	report := filepath.Join(t.TempDir(), "report.txt")
	var machines []*progtest.Process
	for i := range 3 {
		machines = append(machines, progtest.Start(t, fmt.Sprint("machine ", i), env, "-out", report, "-hold", "10m"))
	}
	// Two find the lock held and leave; the third keeps it long after its
	// work, until it is told to stop.
	var runner *progtest.Process
	for _, m := range machines {
		line := m.Line("the report is written", "not run here")
		switch {
		case strings.Contains(line, "written"):
			runner = m
			continue
		case !strings.Contains(line, `"nightly-report" is held by `):
			t.Errorf("says %q, and not who holds it", line)
		}
		if code := m.Wait(); code != 0 {
			t.Errorf("exits with %d: %s", code, m.Said())
		}
	}
	if runner == nil {
		t.Fatal("nobody has run the job")
	}
	runner.Signal(os.Interrupt)
	if code := runner.Wait(); code != 0 {
		t.Errorf("exits with %d: %s", code, runner.Said())
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n != 1 {
		t.Errorf("the job ran %d times:\n%s", n, text)
	}
}
