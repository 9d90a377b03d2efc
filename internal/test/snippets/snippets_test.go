package snippets

import (
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

var update = flag.Bool("update", false, "write the blocks of the documentation anew from their sources")

const root = "../../.."

// TestEveryBlockOfTheDocumentationIsTheCodeItShows keeps code that was never
// compiled out of the documentation, and links that lead nowhere. With -update it
// writes the blocks.
func TestEveryBlockOfTheDocumentationIsTheCodeItShows(t *testing.T) {
	pages, err := Pages(root)
	check.Must(t, err)
	seen := map[string]int{}
	for file, text := range pages {
		if *update {
			text, err = Update(root, file, text)
			check.Must(t, err)
			check.Must(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o644))
		}
		blocks, err := Parse(file, text)
		check.Must(t, err)
		for _, b := range blocks {
			seen[b.Lang]++
		}
		for _, err := range Check(root, file, text) {
			t.Error(err)
		}
	}
	if seen["go"] == 0 || seen["sh"] == 0 {
		t.Fatalf("found %v: the documentation has blocks of go and sh, so this looked in the wrong place", seen)
	}
}

// TestDoctoredDocumentationIsFoundOut changes the documentation in every way
// that must be noticed.
func TestDoctoredDocumentationIsFoundOut(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	check.Must(t, err)
	readme := string(text)
	changed := strings.Replace(readme, "locks.Do(context.Background(),", "locks.DoIt(context.Background(),", 1)
	for name, c := range map[string]struct{ text, says string }{
		"the documentation":                 {readme, ""},
		"a call that is not in the example": {changed, "DoIt"},
		"a line too much":                   {strings.Replace(readme, "```go\n", "```go\n// more\n", 1), "// more"},
		"a line too few":                    {strings.Replace(readme, "package main\n", "", 1), "source: package main"},
		"a file that is not there":          {"<!-- snippet: examples/quickstart/none.go -->\n```go\n```\n", "none.go"},
		"a region that is not there":        {"<!-- snippet: examples/quickstart/main.go#none -->\n```go\n```\n", "0 regions none"},
		"a path out of the repository":      {"<!-- snippet: ../main.go -->\n```go\n```\n", "not within the repository"},
		"a file that is not built":          {"<!-- snippet: internal/test/testdata/main.go -->\n```go\n```\n", "leaves testdata out"},
		"a mark not right before a block":   {"<!-- snippet: a.go -->\n\n```go\n```\n", "a.md:1: a mark is not right before a block"},
		"a block that is never closed":      {"text\n```go\nlocks.Do()\n", "a.md:2: a mark is not right before a block, or a block is never closed"},
		"Go without a mark":                 {"```go\nlease.Unlock(ctx)\n```\n", "has no mark"},
		"no language":                       {"```\nlocks.Do()\n```\n", "names no language"},
		"a language by another name":        {"```golang\nlocks.Do()\n```\n", "the language is golang"},
		"an unclosed quote":                 {"```sh\necho 'hello\n```\n", "sh -n"},
		"an unclosed quote at a prompt":     {"```console\n$ echo \"hello\nhello\n```\n", "sh -n"},
		"nothing typed at a prompt":         {"```console\nhello\n```\n", "no line that begins with $"},
		"links that lead somewhere":         {"# The title, `code`\n[a](#the-title-code) [b](../README.md) [c](../docs) [d](../README.md#try-it) [e](https://example.com/#x)\n", ""},
		"a link to a heading in a block":    {"```text\n# no heading\n```\n[a](#no-heading)\n", "a.md:4: #no-heading leads nowhere: there is no heading no-heading"},
		"a link to no file":                 {"[a](none.md)\n", "no such file"},
		"a link to no heading":              {"[a](../README.md#try-me)\n", "no heading try-me"},
	} {
		file := "docs/a.md"
		if strings.HasPrefix(c.text, "# redlatch") {
			file = "README.md"
		}
		switch wrong := Check(root, file, c.text); {
		case c.says == "" && len(wrong) > 0:
			t.Errorf("%s: %v", name, wrong)
		case c.says != "" && (len(wrong) != 1 || !strings.Contains(wrong[0].Error(), c.says) || !strings.Contains(wrong[0].Error(), file+":")):
			t.Errorf("%s: %q, want one error in %s that says %q", name, wrong, file, c.says)
		}
	}
	if got, err := Update(root, "README.md", changed); got != readme || changed == readme || err != nil {
		t.Errorf("updated to %q, %v", got, err)
	}
}

func TestCommandsAreTakenApartAsTheShellWould(t *testing.T) {
	for script, want := range map[string][][]string{
		"redlatch run -n a -- ./b 'c d'":                           {{"run", "-n", "a", "--", "./b", "c d"}},
		"redlatch run \\\n  a -- b # the rest":                     {{"run", "a", "--", "b"}},
		"lease=$(redlatch lock -w 1m a) || exit":                   {{"lock", "-w", "1m", "a"}},
		"echo \"$(redlatch ls)\"; redlatch show":                   {{"ls"}, {"show"}},
		"printf %s \"$h\" | redlatch unlock -":                     {{"unlock", "-"}},
		"sh -c 'redlatch ls; redlatch doctor' x":                   {{"ls"}, {"doctor"}},
		"redlatch run a -- redlatch ls":                            {{"run", "a", "--", "redlatch", "ls"}, {"ls"}},
		"echo \"redlatch runs\"; redlatch-torture; a#b && (c) & d": nil,
	} {
		if got := Arguments("redlatch", script); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %q\nwant %q", script, got, want)
		}
	}
}

// TestWorkspaceHasEveryModule compares go.work, by which make builds and tests,
// with the repository: code of any other module would be shown, but never
// compiled.
func TestWorkspaceHasEveryModule(t *testing.T) {
	var want []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.Name() == "go.mod":
			want = append(want, filepath.Dir(path))
		}
		return nil
	})
	check.Must(t, err)
	out, err := exec.Command("go", "work", "edit", "-json", filepath.Join(root, "go.work")).Output()
	check.Must(t, err)
	var workspace struct{ Use []struct{ DiskPath string } }
	check.Must(t, json.Unmarshal(out, &workspace))
	var got []string
	for _, use := range workspace.Use {
		got = append(got, filepath.Clean(use.DiskPath))
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("go.work has %q, and the repository has %q", got, want)
	}
}
