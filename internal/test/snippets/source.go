package snippets

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	regionBegin = regexp.MustCompile(`^\s*(?://|#|--)\s*snippet:\s*(\S+)\s*$`)
	regionEnd   = regexp.MustCompile(`^\s*(?://|#|--)\s*end snippet\s*$`)
)

// Source returns what a mark names: a file of the repository, or a region of it
// without its indentation.
func Source(root, mark string) (string, error) {
	path, region, inFile := strings.Cut(mark, "#")
	if !filepath.IsLocal(filepath.FromSlash(path)) {
		return "", fmt.Errorf("%s is not within the repository: write its path from the root", path)
	}
	full := filepath.Join(root, filepath.FromSlash(path))
	text, err := os.ReadFile(full)
	if err != nil {
		return "", err
	}
	if filepath.Ext(path) == ".go" {
		if err := isBuilt(path); err != nil {
			return "", err
		}
	}
	if !inFile {
		return string(text), nil
	}
	if region == head && filepath.Ext(path) == ".lua" {
		return headOf(path, string(text))
	}
	return cut(path, string(text), region)
}

// head is the region that every Lua file has: the comment that it begins with.
const head = "head"

// headOf returns the comment that a Lua file begins with, without the marks of a
// comment.
func headOf(path, text string) (string, error) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(line, "--")
		if !ok || strings.HasPrefix(comment, "#") {
			break
		}
		b.WriteString(strings.TrimPrefix(comment, " "))
	}
	if b.Len() == 0 {
		return "", fmt.Errorf("%s does not begin with a comment", path)
	}
	return b.String(), nil
}

// cut returns the named region of a text.
func cut(path, text, region string) (string, error) {
	var lines []string
	inside, found := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		begins := regionBegin.FindStringSubmatch(line)
		switch {
		case begins != nil && inside:
			return "", fmt.Errorf("%s: region %s begins within %s", path, begins[1], region)
		case begins != nil && begins[1] == region:
			if found {
				return "", fmt.Errorf("%s: there are two regions %s", path, region)
			}
			inside, found = true, true
		case regionEnd.MatchString(line):
			inside = false
		case inside:
			lines = append(lines, line)
		}
	}
	switch {
	case !found:
		return "", fmt.Errorf("%s: there is no region %s: write // snippet: %s before it", path, region, region)
	case inside:
		return "", fmt.Errorf("%s: region %s has no end: write // end snippet after it", path, region)
	case len(lines) == 0:
		return "", fmt.Errorf("%s: region %s is empty", path, region)
	}
	return dedent(lines), nil
}

// dedent removes the white space that all lines begin with.
func dedent(lines []string) string {
	margin, first := "", true
	for _, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if first {
			margin, first = indent, false
		}
		for !strings.HasPrefix(indent, margin) {
			margin = margin[:len(margin)-1]
		}
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.TrimPrefix(line, margin) + "\n")
	}
	return b.String()
}

// isBuilt returns an error for a Go file that ./... does not build: it might
// not compile.
func isBuilt(path string) error {
	for part := range strings.SplitSeq(path, "/") {
		if part == "testdata" || strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".") {
			return fmt.Errorf("%s is not built: go leaves %s out", path, part)
		}
	}
	return nil
}
