package docs_test

import (
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/check"
)

// The pages of which every row that begins with a name in bold has tests; and every
// point of section 10, which is a list.
const guarantees, failures = "guarantees.md", "testing/failures.md"

var (
	bold   = regexp.MustCompile(`(?m)^\| \*\*([^*]+?)\.?\*\*`)
	points = regexp.MustCompile(`(?m)^- (\*\*.*)$`)
	claims = regexp.MustCompile(`(?m)^\t\{("[a-z][^"]+"), func\(`)
)

// rows returns the names in bold with which rows of a page's tables begin.
func rows(page string) (names []string) {
	if before, rest, ok := strings.Cut(page, "\n## 10. "); ok {
		section, _, _ := strings.Cut(rest, "\n## ")
		page = before + "\n" + points.ReplaceAllString(section, "| $1 |")
	}
	for _, m := range bold.FindAllStringSubmatch(page, -1) {
		names = append(names, m[1])
	}
	return names
}

// tree is the source that tests are looked for in.
type tree struct {
	root string
	seen map[string]map[string]error // by folder, what testsIn returned
}

func newTree(root string) *tree { return &tree{root, map[string]map[string]error{}} }

// check returns what is wrong with an index: titles that are not in their page,
// tests that are not there, rows that are missing, and tests of promises and
// failures that do not run on Linux.
func (tr *tree) check(index string, pages map[string]string) (wrong []string) {
	_, index, _ = strings.Cut("\n\n"+index, "\n\n") // the introduction, if there is one
	if _, rest, ok := strings.Cut(index, "\n\n"); ok {
		index = rest
	}
	tests, title := map[string]int{}, ""
	for line := range strings.Lines(index) {
		line = strings.TrimRight(line, "\n")
		if of, ok := strings.CutPrefix(line, "\t"); ok {
			tests[title]++
			folder, name, _ := strings.Cut(of, " ")
			name, _, _ = strings.Cut(name, "/")
			if err, found := tr.tests(folder)[name]; !found {
				wrong = append(wrong, "there is no test "+of)
			} else if page, _, _ := strings.Cut(title, ": "); err != nil && (page == guarantees || page == failures) {
				wrong = append(wrong, fmt.Sprintf("%s: %v", of, err))
			}
			continue
		}
		title = line
		if _, twice := tests[title]; twice {
			wrong = append(wrong, title+" is there twice")
		}
		tests[title] = 0
		if page, what, _ := strings.Cut(title, ": "); what == "" || !strings.Contains(pages[page], what) {
			wrong = append(wrong, fmt.Sprintf("%s has no %s", page, what))
		}
	}
	for title, n := range tests {
		if n == 0 {
			wrong = append(wrong, title+" has no test")
		}
	}
	for _, page := range []string{guarantees, failures} {
		for i, name := range rows(pages[page]) {
			if _, ok := tests[page+": "+name]; !ok {
				wrong = append(wrong, fmt.Sprintf("%s: %s is not there", page, name))
			}
			if slices.Contains(rows(pages[page])[:i], name) {
				wrong = append(wrong, fmt.Sprintf("%s has %s twice", page, name))
			}
		}
	}
	for line := range strings.Lines(pages[failures]) {
		if names := rows(line); names != nil && strings.Contains(strings.ReplaceAll(line, " ", ""), "||") {
			wrong = append(wrong, fmt.Sprintf("%s: a cell of %s is empty", failures, names[0]))
		}
	}
	return wrong
}

// tests returns what testsIn does, and for the suite of nodes its claims.
func (tr *tree) tests(folder string) map[string]error {
	if tr.seen[folder] == nil {
		dir := filepath.Join(tr.root, filepath.FromSlash(folder))
		tr.seen[folder] = testsIn(dir)
		files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, file := range files {
			if source, err := os.ReadFile(file); err == nil && folder == "node/nodetest" && !strings.HasSuffix(file, "_test.go") {
				for _, m := range claims.FindAllStringSubmatch(string(source), -1) {
					tr.seen[folder][m[1]] = nil
				}
			}
		}
	}
	return tr.seen[folder]
}

// each calls do for every file under root whose name has the suffix.
func each(t *testing.T, root, suffix string, do func(path, text string)) {
	t.Helper()
	check.Must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && slices.Contains([]string{".git", ".deps", "node_modules", "build", "bin"}, d.Name()) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, suffix) {
			return nil
		}
		text, err := os.ReadFile(path)
		do(path, string(text))
		return err
	}))
}

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\) \{`)
	skipIfShort  = regexp.MustCompile(`if testing\.Short\(\) \{\s*\w+\.Skip\(.*\)\s*\}`)
	skip         = regexp.MustCompile(`\w\.Skip(f|Now)?\(`)
)

// testsIn returns the test functions of a folder, each with the reason for
// which it does not run, if there is one.
func testsIn(dir string) map[string]error {
	tests := map[string]error{}
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go"))
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", "amd64", true
	for _, path := range files {
		source, err := os.ReadFile(path)
		if ok, failed := linux.MatchFile(dir, filepath.Base(path)); !ok || failed != nil {
			err = fmt.Errorf("%s is not built on Linux", path)
		} else if skip.Match(skipIfShort.ReplaceAll(source, nil)) {
			err = fmt.Errorf("%s skips tests for another reason than testing.Short", path)
		}
		for _, m := range testFunction.FindAllSubmatch(source, -1) {
			tests[string(m[1])] = err
		}
	}
	return tests
}
