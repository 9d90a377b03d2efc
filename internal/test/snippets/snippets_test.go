package snippets

import (
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

var update = flag.Bool("update", false, "write the blocks of the documentation anew from their sources")

const root = "../../.."

// TestEveryBlockOfTheDocumentationIsTheCodeItShows keeps code that was never
// compiled out of the documentation.
func TestEveryBlockOfTheDocumentationIsTheCodeItShows(t *testing.T) {
	if *update {
		changed, err := UpdateFiles(root)
		check.Must(t, err)
		t.Log("written anew:", changed)
	}
	blocks, err := Blocks(root)
	check.Must(t, err)
	seen := map[string]int{}
	for _, b := range blocks {
		seen[b.Lang]++
	}
	if seen["go"] == 0 || seen["sh"] == 0 {
		t.Fatalf("found %v: the documentation has blocks of go and sh, so this looked in the wrong place", seen)
	}
	for _, err := range Check(root, blocks) {
		t.Error(err)
	}
}

// TestDoctoredDocumentationIsFoundOut changes the documentation in every way
// that must be noticed.
func TestDoctoredDocumentationIsFoundOut(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	check.Must(t, err)
	const call = "locks.Do(context.Background(),"
	if !strings.Contains(string(readme), call) {
		t.Fatalf("README.md has no %s to doctor", call)
	}
	for name, c := range map[string]struct{ text, says string }{
		"a call that is not in the example": {strings.Replace(string(readme), call, "locks.DoIt(context.Background(),", 1), "DoIt"},
		"a line too much":                   {"<!-- snippet: examples/quickstart/main.go -->\n```go\n" + example(t) + "// more\n```\n", "// more"},
		"a file that is not there":          {"<!-- snippet: examples/quickstart/none.go -->\n```go\n```\n", "none.go"},
		"a region that is not there":        {"<!-- snippet: examples/quickstart/main.go#none -->\n```go\n```\n", "no region none"},
		"a path out of the repository":      {"<!-- snippet: ../main.go -->\n```go\n```\n", "not within the repository"},
		"a file that is not built":          {"<!-- snippet: internal/test/snippets/testdata/module/main.go -->\n```go\n```\n", "leaves testdata out"},
		"Go without a mark":                 {"```go\nlease.Unlock(ctx)\n```\n", "has no mark"},
		"no language":                       {"```\nlocks.Do()\n```\n", "names no language"},
		"a language by another name":        {"```golang\nlocks.Do()\n```\n", "the language is golang"},
		"an unclosed quote":                 {"```sh\necho 'hello\n```\n", "sh -n"},
		"an unclosed quote at a prompt":     {"```console\n$ echo \"hello\nhello\n```\n", "sh -n"},
		"nothing typed at a prompt":         {"```console\nhello\n```\n", "no line that begins with $"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blocks, err := Parse("doctored.md", c.text)
			check.Must(t, err)
			wrong := Check(root, blocks)
			if !slices.ContainsFunc(wrong, func(err error) bool { return strings.Contains(err.Error(), c.says) }) {
				t.Errorf("Check says %q, nothing of %q", wrong, c.says)
			}
			if !slices.ContainsFunc(wrong, func(err error) bool { return strings.Contains(err.Error(), "doctored.md:") }) {
				t.Errorf("Check says %q, and not where", wrong)
			}
		})
	}
}

func example(t *testing.T) string {
	text, err := Source(root, "examples/quickstart/main.go")
	check.Must(t, err)
	return text
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

func TestUpdatePutsTheSourceInAndLeavesTheRestAlone(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	check.Must(t, err)
	doctored := strings.ReplaceAll(string(readme), "locks.Do(", "locks.DoIt(\n")
	if got, err := Update(root, "README.md", doctored); got != string(readme) || err != nil || doctored == got {
		t.Errorf("updated to %q, %v", got, err)
	}
}

func TestMarkThatShowsNothingIsRefused(t *testing.T) {
	for _, text := range []string{
		"<!-- snippet: a.go -->\n\n```go\n```\n",
		"<!-- snippet: a.go -->\n",
		"```go\nnever closed\n",
	} {
		if blocks, err := Parse("a.md", text); err == nil {
			t.Errorf("%q gives %v and no error", text, blocks)
		}
	}
}
