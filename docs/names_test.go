package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

var (
	named   = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	defined = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
)

// TestEveryTestThatTheDocumentationNamesExists finds names that were left
// behind when a test was renamed or removed.
func TestEveryTestThatTheDocumentationNamesExists(t *testing.T) {
	exists := map[string]bool{}
	each(t, "..", "_test.go", func(path, text string) {
		for _, m := range defined.FindAllStringSubmatch(text, -1) {
			exists[m[1]] = true
		}
	})
	count := 0
	each(t, ".", ".md", func(path, text string) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if count++; !exists[m[1]] {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
	})
	if count < 100 {
		t.Errorf("found %d names of tests: this looked in the wrong place", count)
	}
}

// each calls do for every file under root whose name has the suffix.
func each(t *testing.T, root, suffix string, do func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != root && slices.Contains([]string{".git", ".deps", "node_modules", "build", "bin"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, suffix) {
			return nil
		}
		text, err := os.ReadFile(path)
		do(path, string(text))
		return err
	})
	check.Must(t, err)
}
