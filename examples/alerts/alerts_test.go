// Package alerts has promtool check the alerts of this folder, and the test that
// says when each fires.
package alerts

import (
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
	for _, args := range [][]string{{"check", "rules", "jobs.rules.yaml"}, {"test", "rules", "jobs_test.yaml"}} {
		if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v, %s", args, err, out)
		}
	}
}
