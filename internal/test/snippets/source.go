package snippets

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Source returns what a mark names: a file of the repository, or a region of it
// without its indentation.
func Source(root, mark string) (string, error) {
	path, name, inFile := strings.Cut(mark, "#")
	if !filepath.IsLocal(filepath.FromSlash(path)) {
		return "", fmt.Errorf("%s is not within the repository: write its path from the root", path)
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "testdata" || strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".") {
			return "", fmt.Errorf("%s is not built: go leaves %s out", path, part)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil || !inFile {
		return string(text), err
	}
	region := regexp.MustCompile(`(?ms)^([ \t]*)(?://|#|--) snippet: ` + regexp.QuoteMeta(name) + `\n(.+?)^[ \t]*(?://|#|--) end snippet$`)
	all := region.FindAllStringSubmatch(string(text), -1)
	if len(all) != 1 || strings.Contains(all[0][2], " snippet: ") {
		return "", fmt.Errorf("%s: there are %d regions %s, want one: from // snippet: %s to // end snippet, without another one in it", path, len(all), name, name)
	}
	return regexp.MustCompile("(?m)^"+all[0][1]).ReplaceAllString(all[0][2], ""), nil
}

// Update returns a Markdown text in which every marked block equals its source.
func Update(root, file, text string) (string, error) {
	all, err := Parse(file, text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	next := 0
	for _, s := range all {
		if s.Mark == "" {
			continue
		}
		source, err := Source(root, s.Mark)
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.Where(), err)
		}
		b.WriteString(text[next:s.from] + source)
		next = s.to
	}
	return b.String() + text[next:], nil
}
