package explore

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/mutants"
)

// TestEveryRuleIsMissed switches each rule off, and has the search find what
// goes wrong. One that it does not miss is a hole in the search.
func TestEveryRuleIsMissed(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long")
	}
	binary := mutated(t)
	if binary == "" {
		return
	}
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
	run.Env = append(os.Environ(), "REDLATCH_RULE="+r.Name, mutants.Env+"="+r.Mutant)
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
	in.States = cmp.Or(in.States, 1_000_000)
	got := Search(in)
	switch {
	case r.Want == Fine && got.Bad == Fine:
	case got.Bad == Fine:
		t.Fatalf("nothing found in %d states, %d steps, complete %v, seen %+v", got.States, got.Steps, got.Complete, got.Seen)
	case got.Bad != r.Want:
		t.Fatalf("%v, want %v, in %d states\n%s", got.Bad, r.Want, got.States, got.Story)
	}
	t.Logf("RESULT %v after %d steps, %d states, complete %v, %.1f s\n%s", got.Bad, steps(got), got.States, got.Complete, got.Took.Seconds(), got.Story)
}

// steps is the length of a way.
func steps(r Result) int { return strings.Count(r.Story, "\n") }

// mutated builds these tests with every changed line in them, and returns the
// binary.
func mutated(t *testing.T) (binary string) {
	var all []mutants.Edit
	for i, e := range edits {
		all = append(all, mutants.Change(fmt.Sprint(i), e.file, e.change))
	}
	binaries := mutants.Build(t, all, "./internal/test/explore", "test -c -vet=off -tags onerule")
	for _, e := range all {
		binary = binaries[e.Name]
		if binary != binaries["0"] { // a rule may be several edits
			t.Fatalf("%s: another edit has changed the place that reads\n%s", e.File, e.Old)
		}
	}
	return binary
}
