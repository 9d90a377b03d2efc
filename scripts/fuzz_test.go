//go:build unix

// Package scripts_test checks the scripts of this folder.
package scripts_test

import (
	"fmt"
	"github.com/redlatch/redlatch/internal/test/check"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var must = check.Must

// fuzzFunctions returns the fuzz targets in the source below a folder that are
// built here, as fuzz.sh names them.
func fuzzFunctions(t *testing.T, root string) (targets []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		if ok, err := build.Default.MatchFile(filepath.Dir(path), d.Name()); !ok {
			return err
		}
		source, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, decl := range source.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
				targets = append(targets, strings.TrimSuffix("./"+filepath.ToSlash(folder), "/.")+" "+f.Name.Name)
			}
		}
		return nil
	})
	must(t, err)
	slices.Sort(targets)
	return targets
}

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

// differ says what is in one list alone.
func differ(source, run []string) (wrong []string) {
	for _, t := range source {
		if !slices.Contains(run, t) {
			wrong = append(wrong, "is not run: "+t)
		}
	}
	for _, t := range run {
		if !slices.Contains(source, t) {
			wrong = append(wrong, "is not there: "+t)
		}
	}
	return wrong
}

func TestEveryFuzzTargetIsRunByMakeFuzz(t *testing.T) {
	recipe, err := exec.Command("make", "-C", "..", "-n", "fuzz").CombinedOutput()
	if err != nil || !strings.Contains(string(recipe), "scripts/fuzz.sh") || strings.Contains(string(recipe), "FUZZ=") {
		t.Errorf("make fuzz does %s, %v", recipe, err)
	}
	source := fuzzFunctions(t, "..")
	if len(source) < 10 {
		t.Errorf("only %d fuzz targets are found in the source: %q", len(source), source)
	}
	for _, wrong := range differ(source, listed(t, "fuzz.sh")) {
		t.Error(wrong)
	}
}

// TestFuzzTargetsAreFoundWhereverTheyAre runs the script in a tree made for the
// purpose, and has a list that lacks one be found out.
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
	run, source := listed(t, filepath.Join(root, "scripts", "fuzz.sh")), fuzzFunctions(t, root)
	if !slices.Equal(run, want) || !slices.Equal(source, want) {
		t.Errorf("the script runs %q, in the source are %q, want %q", run, source, want)
	}
	if wrong := differ(source, run[1:]); len(wrong) != 1 || wrong[0] != "is not run: . FuzzRoot" {
		t.Errorf("a target that is not run is told as %q", wrong)
	}
	if wrong := differ(source[1:], run); len(wrong) != 1 {
		t.Errorf("a target that is not there is told as %q", wrong)
	}
}
