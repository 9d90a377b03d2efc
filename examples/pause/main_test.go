//go:build unix

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/servertest"
)

// TestTheStoryEndsAsTold runs the program, both ways.
func TestTheStoryEndsAsTold(t *testing.T) {
	program := filepath.Join(t.TempDir(), "pause")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for flag, end := range map[string][]string{
		"-fence=true":  {"A is refused: token ", "the row is B's\n"},
		"-fence=false": {"A has written\n", "the row is A's\n"},
	} {
		server := servertest.Redis(t, 1)[0]
		out, err := exec.Command(program, "-redis", server.URL(), flag).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", flag, err, out)
		}
		t.Logf("%s:\n%s", flag, out)
		for _, line := range end {
			if !strings.Contains(string(out), line) {
				t.Errorf("%s: nobody says %q", flag, line)
			}
		}
	}
}
