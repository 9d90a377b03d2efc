package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// packages returns all packages that path imports, directly or not.
func packages(t *testing.T, path string) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", path).CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	return strings.Fields(string(out))
}

// TestCommandDoesNotBringTheMachineryOfTorture: only redlatch-torture links it.
func TestCommandDoesNotBringTheMachineryOfTorture(t *testing.T) {
	for _, path := range packages(t, ".") {
		if strings.Contains(path, "redlatch/internal/test/") {
			t.Errorf("redlatch brings %s", path)
		}
	}
	if !slices.Contains(packages(t, "../redlatch-torture"), "github.com/redlatch/redlatch/internal/test/chaos") {
		t.Error("redlatch-torture does not bring internal/test/chaos: the path is another one")
	}
}

// TestSuperviseKnowsNoLocks: to supervise, a lease is an interface.
func TestSuperviseKnowsNoLocks(t *testing.T) {
	for _, path := range packages(t, "./internal/supervise") {
		if strings.HasPrefix(path, "github.com/") && !strings.HasPrefix(path, "github.com/redlatch/redlatch/cmd/") && path != "github.com/redlatch/redlatch/internal/owned" {
			t.Errorf("supervise brings %s", path)
		}
	}
}
