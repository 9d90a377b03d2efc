package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryRuleIsMissed switches each rule off, and has the search find what
// goes wrong. One that it does not miss is a hole in the search.
func TestEveryRuleIsMissed(t *testing.T) {
	binary := mutated(t)
	for _, r := range Rules() {
		if !strings.Contains(r.Name, os.Getenv("REDLATCH_ONLY")) {
			continue
		}
		t.Run(r.Name, func(t *testing.T) {
			if r.Mutant == "" {
				missed(t, r)
				return
			}
			t.Parallel()
			t.Log(runMutant(t, binary, r))
		})
	}
}

// runMutant searches an instance with a line changed.
func runMutant(t *testing.T, binary string, r Rule) string {
	run := exec.CommandContext(t.Context(), binary, "-test.run", "^TestOneRule$", "-test.v")
	run.Env = append(os.Environ(), "REDLATCH_RULE="+r.Name, "REDLATCH_RULE_OFF="+r.Mutant)
	out, err := run.CombinedOutput()
	text := string(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if _, after, ok := strings.Cut(text, "RESULT "); ok {
		text, _, _ = strings.Cut(after, "--- PASS")
	}
	return text
}

// missed searches with a rule switched off.
func missed(t *testing.T, r Rule) {
	in := r.Instance
	in.Name = r.Name
	if in.States == 0 {
		in.States = 1_000_000
	}
	got := Search(context.Background(), in)
	switch {
	case r.Want == Fine && got.Bad == Fine:
	case got.Bad == Fine:
		t.Fatalf("nothing found in %d states, %d steps, complete %v, seen %+v", got.States, got.Steps, got.Complete, got.Seen)
	case got.Bad != r.Want:
		t.Fatalf("%v, want %v, in %d states\n%s", got.Bad, r.Want, got.States, got.Story)
	}
	t.Logf("RESULT %v after %d steps, %d states, complete %v, %.1f s\n%s", got.Bad, len(got.Trace), got.States, got.Complete, got.Took.Seconds(), got.Story)
}

// mutated builds these tests with every changed line in them, and returns the
// binary.
func mutated(t *testing.T) string {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace, texts := map[string]string{}, map[string]string{}
	for _, e := range edits {
		path := filepath.Join(root, e.file)
		text, ok := texts[path]
		if !ok {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if n := strings.Count(text, e.old); n != 1 {
			t.Fatalf("%s has %d places that read\n%s\nwant 1: has the code changed?", e.file, n, e.old)
		}
		texts[path] = strings.Replace(text, e.old, e.new, 1)
		ask := filepath.Join(filepath.Dir(path), "rule_off.go")
		texts[ask] = fmt.Sprintf(asks, filepath.Base(filepath.Dir(path)))
	}
	for path, text := range texts {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		replace[path] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "explore.test")
	if err := os.WriteFile(file, overlay, 0o666); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-tags", "onerule", "-overlay", file, "-o", binary, "./internal/explore")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("it does not compile: %v\n%s", err, out)
	}
	return binary
}
