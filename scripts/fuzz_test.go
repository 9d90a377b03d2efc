//go:build unix

// Package scripts_test checks the scripts of this folder.
package scripts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

var must = check.Must

// listed returns what fuzz.sh would run.
func listed(t *testing.T, script string) []string {
	t.Helper()
	cmd := exec.Command("sh", script, "--list")
	cmd.Env = append(os.Environ(), "FUZZ=")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s --list: %v", script, err)
	}
	targets := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(targets)
	return targets
}

func TestEveryFuzzTargetIsRunByMakeFuzz(t *testing.T) {
	recipe, err := exec.Command("make", "-C", "..", "-n", "fuzz").CombinedOutput()
	if err != nil || !strings.Contains(string(recipe), "scripts/fuzz.sh") || strings.Contains(string(recipe), "FUZZ=") {
		t.Errorf("make fuzz does %s, %v", recipe, err)
	}
	source, err := exec.Command("git", "-C", "..", "-c", "safe.directory=*", "grep", "-ho", "^func Fuzz[A-Za-z0-9_]*", "--", "*_test.go").Output()
	must(t, err)
	want := strings.Fields(strings.ReplaceAll(string(source), "func ", ""))
	var run []string
	for _, target := range listed(t, "fuzz.sh") {
		_, name, _ := strings.Cut(target, " ")
		run = append(run, name)
	}
	slices.Sort(want)
	slices.Sort(run)
	if len(want) < 10 || !slices.Equal(run, want) {
		t.Errorf("make fuzz runs %q, in the source are %q", run, want)
	}
}

// TestFuzzTargetsAreFoundWhereverTheyAre runs the script in a tree made for the
// purpose.
func TestFuzzTargetsAreFoundWhereverTheyAre(t *testing.T) {
	root := t.TempDir()
	script, err := os.ReadFile("fuzz.sh")
	must(t, err)
	const fuzz = "import \"testing\"\n\nfunc %s(f *testing.F) {}\n"
	for path, text := range map[string]string{
		"scripts/fuzz.sh":        string(script),
		"go.mod":                 "module example.com/x\n\ngo 1.25\n",
		"a.go":                   "package a\n",
		"a_test.go":              "package a\n\n" + fmt.Sprintf(fuzz, "FuzzRoot"),
		"b/b.go":                 "package b\n",
		"b/b_test.go":            "package b_test\n\n" + fmt.Sprintf(fuzz, "FuzzOutside") + "\nfunc FuzzSecond(f *testing.F) {}\n// func FuzzComment(f *testing.F) {}\n",
		"b/b_plan9_test.go":      "package b\n\n" + fmt.Sprintf(fuzz, "FuzzElsewhere"),
		"nested/go.mod":          "module example.com/nested\n\ngo 1.25\n",
		"nested/c/c_test.go":     "package c\n\n" + fmt.Sprintf(fuzz, "FuzzNested"),
		"b/testdata/d/d_test.go": "package d\n\n" + fmt.Sprintf(fuzz, "FuzzData"),
	} {
		path = filepath.Join(root, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	want := []string{". FuzzRoot", "./b FuzzOutside", "./b FuzzSecond", "./nested/c FuzzNested"}
	if run := listed(t, filepath.Join(root, "scripts", "fuzz.sh")); !slices.Equal(run, want) {
		t.Errorf("the script runs %q, want %q", run, want)
	}
}
