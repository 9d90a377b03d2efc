//go:build unix

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/redlatch/redlatch/cmd/internal/manual"
	"github.com/redlatch/redlatch/internal/test/snippets"
)

func TestHelpFitsATerminalAndHasExamples(t *testing.T) {
	root, _ := newRoot()
	if root.Short == "" || !strings.Contains(root.Example, "redlatch-torture") {
		t.Errorf("short %q, example %q", root.Short, root.Example)
	}
	for line := range strings.SplitSeq(root.Long, "\n") {
		if len([]rune(line)) > 84 {
			t.Errorf("a line of the help is %d wide: %s", len(line), line)
		}
	}
}

func TestEveryFlagIsInTheManualPage(t *testing.T) {
	root, _ := newRoot()
	dir := filepath.Join(t.TempDir(), "man")
	root.SetArgs([]string{"man", dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "redlatch-torture.1"))
	if err != nil {
		t.Fatal(err)
	}
	root.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Usage == "" || !strings.Contains(string(page), manual.Escape("--"+f.Name)) {
			t.Errorf("--%s is not in the page", f.Name)
		}
	})
	if files, _ := os.ReadDir(dir); len(files) != 1 || !strings.Contains(string(page), ".BR redlatch (1)") {
		t.Errorf("%d pages, %s", len(files), page)
	}
}

// TestCommandLinesOfTheDocumentationAreUnderstood parses every command line of
// redlatch-torture that the documentation shows.
func TestCommandLinesOfTheDocumentationAreUnderstood(t *testing.T) {
	blocks, err := snippets.Blocks("../..")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, b := range blocks {
		_, script := snippets.Script(b)
		for _, words := range snippets.Commands(script) {
			i := slices.IndexFunc(words, func(w string) bool { return w == "redlatch-torture" || w == "./cmd/redlatch-torture" })
			if i < 0 {
				continue
			}
			seen++
			root, _ := newRoot()
			if err := root.ParseFlags(words[i+1:]); err != nil {
				t.Errorf("%s: %q: %v", b.Where(), words, err)
			} else if err := root.ValidateArgs(root.Flags().Args()); err != nil {
				t.Errorf("%s: %q: %v", b.Where(), words, err)
			}
		}
	}
	if seen == 0 {
		t.Error("the documentation shows no command line of redlatch-torture")
	}
}
