package snippets

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

// otherPhrases are the pages that speak of earlier versions, and those that a
// program writes, with its own words.
var otherPhrases = []string{
	"CHANGELOG.md", "docs/testing/interop.md",
	"docs/testing/bench/README.md", "docs/testing/bench/databases.md", "docs/testing/bench/consensus.md",
}

// TestDocumentationHasNoPhraseToTranslate checks what the documentation says in
// its own words. What it quotes is in the sources.
func TestDocumentationHasNoPhraseToTranslate(t *testing.T) {
	for file, text := range pages(t) {
		if slices.Contains(otherPhrases, file) {
			continue
		}
		for i, line := range prose(text) {
			where := fmt.Sprintf("%s:%d", file, i+1)
			for _, err := range Phrases(where, code.ReplaceAllString(line, "`…`")) {
				t.Error(err)
			}
		}
	}
}

// folders are those whose text users read, in programs or in package documentation.
var folders = []string{".", "adapters", "admin", "cmd", "examples", "fence", "internal", "node", "store", "ui"}

// TestSourcesHaveNoPhraseToTranslate looks at the strings, the templates and the
// comments of the sources.
func TestSourcesHaveNoPhraseToTranslate(t *testing.T) {
	phrases := func(where, text string) {
		for _, err := range Phrases(where, text) {
			t.Error(err)
		}
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		folder, _, below := strings.Cut(name, "/")
		if !below && !d.IsDir() {
			folder = "."
		}
		switch {
		case d.IsDir() && (d.Name() == "testdata" || name == "internal/test" || !slices.Contains(folders, folder)):
			return filepath.SkipDir
		case d.IsDir(), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch filepath.Ext(name) {
		case ".html", ".js":
			for i, line := range strings.Split(string(source), "\n") {
				phrases(fmt.Sprintf("%s:%d", name, i+1), line)
			}
		case ".go":
			texts, comments, err := GoText(name, source)
			if err != nil {
				return err
			}
			for _, found := range []map[string]string{texts, comments} {
				for _, where := range slices.Sorted(maps.Keys(found)) {
					phrases(where, found[where])
				}
			}
		}
		return nil
	})
	check.Must(t, err)
}

func TestPhrasesAreFoundAsAWhole(t *testing.T) {
	for text, want := range map[string]int{
		"With one node no lock can be had while it is down.": 2,
		"redis://a: in quarantine for %v yet":                2,
		"%s of %q needs %d of %d nodes, after %v: %s":        1,
		"instead\nof being told":                             1,
		"fits: ":                                             1,
		"What fits: a longer TTL":                            0,
		"It is bold, and the lock is not held.":              0,
		"3 waited for, 4 waiting":                            1,
		"A slow node is not waited for twice.":               0,
	} {
		if got := Phrases("a", text); len(got) != want {
			t.Errorf("%q: found %v, want %d", text, got, want)
		}
	}
}

func TestStringsThatAreAddedAreOne(t *testing.T) {
	const source = "package a\n\n// Whoever reads this.\nvar x = \"it is\" + \" told \" + name + ` of\nx`\n"
	texts, comments, err := GoText("a.go", []byte(source))
	if err != nil || len(texts) != 1 || texts["a.go:4:9"] != "it is told … of\nx" || comments["a.go:3:1"] != "Whoever reads this.\n" {
		t.Errorf("got %q and %q, %v", texts, comments, err)
	}
}
