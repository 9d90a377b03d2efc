// Package alerts has promtool check the alerts of this folder, and the test that
// says when each fires.
package alerts

import (
	"os"
	"os/exec"
	"testing"
)

func TestAlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		if testing.Short() {
			t.Skip("it needs promtool")
		}
		t.Fatal("this test needs promtool: install prometheus with the system's package manager, or run make deps")
	}
	for _, file := range []string{"jobs.rules.yaml", "jobs_test.yaml"} {
		// Read here too, so that go test knows what the result depends on.
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "jobs.rules.yaml"}, {"test", "rules", "jobs_test.yaml"}} {
		if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v, %s", args, err, out)
		}
	}
}
