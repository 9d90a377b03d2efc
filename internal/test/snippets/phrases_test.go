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
// its own words, and lists what it quotes from programs.
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
			for _, span := range code.FindAllString(line, -1) {
				for _, err := range Phrases(where, strings.Trim(span, "`")) {
					t.Log("quoted:", err)
				}
			}
		}
		blocks, err := Parse(file, text)
		check.Must(t, err)
		for _, b := range blocks {
			for _, err := range Phrases(b.Where(), b.Text) {
				t.Log("quoted:", err)
			}
		}
	}
}

// clean says of each folder whose strings users read whether it must have no
// phrase. Those of the others are counted.
var clean = map[string]bool{
	"examples": true, "fence": true,
	"": false, "adapters": false, "admin": false, "cmd": false, "internal": false, "node": false, "store": false, "ui": false,
}

// TestSourcesHaveNoPhraseToTranslate looks at the strings, the templates and the
// comments of the sources.
func TestSourcesHaveNoPhraseToTranslate(t *testing.T) {
	inStrings, inComments := 0, 0
	report := t.Log
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root || name == "internal/test" {
				return filepath.SkipDir
			}
			return nil
		}
		folder, _, below := strings.Cut(name, "/")
		if !below {
			folder = ""
		}
		must, shipped := clean[folder]
		if !shipped || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		if report = t.Log; must {
			report = t.Error
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		switch filepath.Ext(name) {
		case ".html", ".js":
			for i, line := range strings.Split(string(source), "\n") {
				for _, err := range Phrases(fmt.Sprintf("%s:%d", name, i+1), line) {
					inStrings++
					report(err)
				}
			}
		case ".go":
			texts, comments, err := GoText(name, source)
			if err != nil {
				return err
			}
			for _, where := range slices.Sorted(maps.Keys(texts)) {
				for _, err := range Phrases(where, texts[where]) {
					inStrings++
					report(err)
				}
			}
			for _, where := range slices.Sorted(maps.Keys(comments)) {
				for _, err := range Phrases(where, comments[where]) {
					inComments++
					if must {
						t.Error(err)
					}
				}
			}
		}
		return nil
	})
	check.Must(t, err)
	t.Logf("%d phrases in strings, %d in comments", inStrings, inComments)
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
